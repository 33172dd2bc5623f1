// bool, true and false are C++'s own.
#pragma once

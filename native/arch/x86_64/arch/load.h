// The instruction that loads a word of 32 bits (operand 1) into a register (operand 0).
#pragma once

#define TG_LOAD_32 "movl %1, %0"

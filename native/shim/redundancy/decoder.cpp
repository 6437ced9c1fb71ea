#include "redundancy/decoder.h"

#include <Zydis/Decoder.h>
#include <Zydis/Register.h>

namespace tachograph::decoder {
namespace {

constinit ZydisDecoder g_decoder{};

uint8_t general_register(ZydisRegister which) {
    if (which == ZYDIS_REGISTER_NONE) return kNoRegister;
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, which);
    if (whole == ZYDIS_REGISTER_RIP) return kPc;
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return kNoRegister;
    return static_cast<uint8_t>(whole - ZYDIS_REGISTER_RAX);
}

constexpr uint8_t kByteMap = 0;
constexpr uint8_t kLongMap = 1;  // 0F

Flow flow_of(const ZydisDecodedInstruction& instruction) {
    const bool relative = instruction.raw.imm[0].is_relative != 0;
    switch (instruction.meta.category) {
        case ZYDIS_CATEGORY_COND_BR: {
            // Those that look at flags; the others look at rcx.
            const bool near = instruction.opcode_map == kLongMap && instruction.opcode >> 4 == 8;
            const bool brief = instruction.opcode_map == kByteMap && instruction.opcode >> 4 == 7;
            return relative && (near || brief) ? Flow::branch : Flow::leaves;
        }
        case ZYDIS_CATEGORY_UNCOND_BR:
            return relative ? Flow::jump : Flow::leaves;
        case ZYDIS_CATEGORY_CALL:
        case ZYDIS_CATEGORY_RET:
        case ZYDIS_CATEGORY_INTERRUPT:
        case ZYDIS_CATEGORY_SYSCALL:
        case ZYDIS_CATEGORY_SYSRET:
        case ZYDIS_CATEGORY_SYSTEM:
        case ZYDIS_CATEGORY_IO:
        case ZYDIS_CATEGORY_IOSTRINGOP:
            return Flow::leaves;
        default:
            return Flow::next;
    }
}

Operation operation_of(ZydisMnemonic mnemonic) {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_MOV:
        case ZYDIS_MNEMONIC_MOVZX:
            return Operation::move;
        case ZYDIS_MNEMONIC_MOVSX:
        case ZYDIS_MNEMONIC_MOVSXD:
            return Operation::move_signed;
        case ZYDIS_MNEMONIC_LEA:
            return Operation::address;
        case ZYDIS_MNEMONIC_ADD:
            return Operation::add;
        case ZYDIS_MNEMONIC_SUB:
            return Operation::subtract;
        case ZYDIS_MNEMONIC_AND:
            return Operation::conjoin;
        case ZYDIS_MNEMONIC_OR:
            return Operation::disjoin;
        case ZYDIS_MNEMONIC_XOR:
            return Operation::differ;
        case ZYDIS_MNEMONIC_CMP:
            return Operation::compare;
        case ZYDIS_MNEMONIC_TEST:
            return Operation::test;
        default:
            return Operation::other;
    }
}

// Kind `none` where a walk cannot know its value: the second byte of a register, vectors, segments.
Operand operand_of(const ZydisDecodedOperand& operand) {
    Operand found;
    if (operand.size > 64 || operand.size < 8) return found;
    found.width = static_cast<uint8_t>(operand.size / 8);
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
        const ZydisRegister which = operand.reg.value;
        const bool second = which >= ZYDIS_REGISTER_AH && which <= ZYDIS_REGISTER_BH;
        found.number = second ? kNoRegister : general_register(which);
        if (found.number < kPc) found.kind = Operand::Kind::general;
    } else if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !operand.imm.is_relative) {
        found.value = operand.imm.value.u;
        found.kind = Operand::Kind::immediate;
    } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
        found.kind = Operand::Kind::memory;
    }
    return found;
}

bool cannot_be_watched(const ZydisDecodedInstruction& instruction) {
    constexpr ZydisInstructionAttributes kRepeated =
        ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    if ((instruction.attributes & (kRepeated | ZYDIS_ATTRIB_HAS_LOCK)) != 0) return true;
    switch (instruction.meta.category) {
        case ZYDIS_CATEGORY_PREFETCH:
        case ZYDIS_CATEGORY_PREFETCHWT1:
        case ZYDIS_CATEGORY_NOP:
        case ZYDIS_CATEGORY_WIDENOP:
        case ZYDIS_CATEGORY_STRINGOP:
        case ZYDIS_CATEGORY_SEMAPHORE:
            return true;
        default:
            break;
    }
    if (instruction.mnemonic == ZYDIS_MNEMONIC_XCHG) return true;  // locks by itself
    return instruction.avx.mask.reg != ZYDIS_REGISTER_NONE &&
           instruction.avx.mask.reg != ZYDIS_REGISTER_K0;
}

// False where its address cannot be computed from general registers.
bool take_address(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand& operand,
                  Memory* memory) {
    if (operand.mem.segment == ZYDIS_REGISTER_FS || operand.mem.segment == ZYDIS_REGISTER_GS)
        return false;
    memory->base = general_register(operand.mem.base);
    memory->index = general_register(operand.mem.index);
    memory->scale = operand.mem.scale;
    memory->displacement = operand.mem.disp.has_displacement ? operand.mem.disp.value : 0;
    memory->narrow = instruction.address_width == 32;
    return (operand.mem.base == ZYDIS_REGISTER_NONE || memory->base != kNoRegister) &&
           (operand.mem.index == ZYDIS_REGISTER_NONE || memory->index != kNoRegister);
}

bool take_access(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand& operand,
                 Memory* memory) {
    if (operand.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT) return false;
    if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM || operand.size < 8) return false;
    if (!take_address(instruction, operand, memory)) return false;
    memory->width = operand.size / 8;
    memory->reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    memory->writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    return memory->reads || memory->writes;
}

// `operation`, where both operands are such that a walk can follow it.
void take_operation(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands,
                    Instruction* out) {
    const Operation operation = operation_of(instruction.mnemonic);
    if (operation == Operation::other || instruction.operand_count < 2) return;
    out->first = operand_of(operands[0]);
    out->second = operand_of(operands[1]);
    if (operation == Operation::address) {
        if (out->first.kind != Operand::Kind::general ||
            !take_address(instruction, operands[1], &out->computed))
            return;
    } else if (out->first.kind == Operand::Kind::none || out->second.kind == Operand::Kind::none) {
        return;
    }
    out->operation = operation;
}

}  // namespace

void prepare() { ZydisDecoderInit(&g_decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

bool decode(const uint8_t* bytes, size_t size, Instruction* out) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&g_decoder, bytes, size, &instruction, operands)))
        return false;
    *out = {};
    out->length = instruction.length;
    out->opcode = static_cast<uint16_t>(instruction.opcode_map << 8 | instruction.opcode);
    out->flow = flow_of(instruction);
    if (out->flow == Flow::branch) out->condition = instruction.opcode & 0xF;
    if (out->flow == Flow::branch || out->flow == Flow::jump)
        out->target = instruction.raw.imm[0].value.s;
    out->repeats = (instruction.attributes & ZYDIS_ATTRIB_HAS_REP) != 0;
    out->changes_flags = !instruction.cpu_flags || instruction.cpu_flags->modified != 0 ||
                         instruction.cpu_flags->set_0 != 0 || instruction.cpu_flags->set_1 != 0 ||
                         instruction.cpu_flags->undefined != 0;
    const bool hidden = cannot_be_watched(instruction);
    for (uint8_t at = 0; at < instruction.operand_count; ++at) {
        const ZydisDecodedOperand& operand = operands[at];
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
            const uint8_t changed = general_register(operand.reg.value);
            if (changed != kNoRegister) out->changes |= 1u << changed;
        }
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0)
            out->stores = true;
        if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || hidden || out->memory.width != 0) continue;
        Memory memory;
        if (take_access(instruction, operand, &memory)) out->memory = memory;
    }
    take_operation(instruction, operands, out);
    return true;
}

}  // namespace tachograph::decoder

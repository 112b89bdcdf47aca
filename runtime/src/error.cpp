#include "orch/error.h"

namespace orch {

const char* to_string(Error error) {
  switch (error) {
    case Error::Ok:
      return "Ok";
    case Error::InvalidProgram:
      return "InvalidProgram";
    case Error::UnsupportedProgram:
      return "UnsupportedProgram";
    case Error::OperatorMissing:
      return "OperatorMissing";
    case Error::DtypeNotSelected:
      return "DtypeNotSelected";
    case Error::DelegateMissing:
      return "DelegateMissing";
    case Error::NotFound:
      return "NotFound";
    case Error::StateTooSmall:
      return "StateTooSmall";
    case Error::ArenaTooSmall:
      return "ArenaTooSmall";
    case Error::Misaligned:
      return "Misaligned";
    case Error::InvalidArgument:
      return "InvalidArgument";
    case Error::ShapeTooLarge:
      return "ShapeTooLarge";
    case Error::NotSupported:
      return "NotSupported";
    case Error::InstructionLimit:
      return "InstructionLimit";
    case Error::ImageDamaged:
      return "ImageDamaged";
    case Error::MemoryNotSet:
      return "MemoryNotSet";
    case Error::ScratchTooSmall:
      return "ScratchTooSmall";
    case Error::NotDone:
      return "NotDone";
    case Error::WrongFloatMode:
      return "WrongFloatMode";
  }
  return "unknown error";
}

}  // namespace orch

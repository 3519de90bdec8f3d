package seccomp

import (
	"encoding/binary"
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Program is a filter in the kernel's form: classic BPF instructions over struct
// seccomp_data, for one architecture.
type Program []unix.SockFilter

// maxInstructions is BPF_MAXINSNS (linux/bpf_common.h); the kernel refuses longer filters.
const maxInstructions = 4096

// instructionSize is sizeof(struct sock_filter).
const instructionSize = 8

// Bytes returns the program as libseccomp exports it: one struct sock_filter after the
// other, little-endian, as on both supported architectures.
func (p Program) Bytes() []byte {
	code := make([]byte, 0, len(p)*instructionSize)
	for _, in := range p {
		code = binary.LittleEndian.AppendUint16(code, in.Code)
		code = append(code, in.Jt, in.Jf)
		code = binary.LittleEndian.AppendUint32(code, in.K)
	}
	return code
}

// parseProgram is the inverse of [Program.Bytes]. It does not check what the instructions
// do; the kernel does that when it takes them.
func parseProgram[Text string | []byte](code Text) (Program, error) {
	if len(code) == 0 || len(code)%instructionSize != 0 {
		return nil, fmt.Errorf("reading filter instructions: %d bytes are not a whole number of them", len(code))
	}
	if len(code)/instructionSize > maxInstructions {
		return nil, fmt.Errorf("reading filter instructions: %d are more than the kernel's %d", len(code)/instructionSize, maxInstructions)
	}
	program := make(Program, len(code)/instructionSize)
	for i := range program {
		at := i * instructionSize
		program[i] = unix.SockFilter{
			Code: uint16(code[at]) | uint16(code[at+1])<<8,
			Jt:   code[at+2],
			Jf:   code[at+3],
			K:    uint32(code[at+4]) | uint32(code[at+5])<<8 | uint32(code[at+6])<<16 | uint32(code[at+7])<<24,
		}
	}
	return program, nil
}

// returnValue is what a rule makes the filter return to the kernel. An action that is not
// known here kills: it can only be a mistake in this package.
func returnValue(r rule) uint32 {
	switch r.action {
	case specs.ActAllow:
		return unix.SECCOMP_RET_ALLOW
	case specs.ActNotify:
		return unix.SECCOMP_RET_USER_NOTIF
	case specs.ActErrno:
		return unix.SECCOMP_RET_ERRNO | uint32(r.errno) //nolint:gosec // at most 4095
	default:
		return unix.SECCOMP_RET_KILL_PROCESS
	}
}

//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

// func markBurst(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64)
//
//	DI  base        R9   these, shifted so that bit 0 is frame i
//	SI  frame i     R11  these, without packets that can't be marked
//	R8  record i
TEXT ·markBurst(SB), NOSPLIT, $0-72
	MOVQ  base+0(FP), DI
	MOVQ  frames_base+8(FP), SI
	MOVQ  records_base+32(FP), R8
	MOVQ  these+56(FP), R9
	MOVQ  R9, R11
	TESTQ R9, R9
	JEQ   done

frame:
	SHRQ    $1, R9
	JCC     next
	MOVBLZX const_recordTOS(R8), AX
	LEAL    1(AX), CX
	TESTB   $2, CX              // of ECT(1) and ECT(0) plus 1, not of Not-ECT and CE plus 1
	JEQ     unmarkable
	MOVWLZX const_recordIP(R8), DX
	ADDQ    const_frameData(SI), DX
	ADDQ    DI, DX              // the IP header
	TESTB   $0x20, (DX)         // of version 6, not of version 4
	JNE     ipv6
	ORB     $3, 1(DX)

	// The increase of TOS, as a number of two octets read in the other order, is subtracted from the checksum: ~(~HC + d) is HC - d. Since the sum
	// is in ones' complement, the order of octets doesn't matter, and a borrow is subtracted again.
	NOTL    AX
	ANDL    $3, AX
	SHLL    $8, AX
	MOVWLZX 10(DX), CX
	SUBW    AX, CX
	SBBW    $0, CX
	MOVW    CX, 10(DX)

next:
	ADDQ  $const_frameSize, SI
	ADDQ  $64, R8
	TESTQ R9, R9
	JNE   frame

done:
	MOVQ R11, marked+64(FP)
	RET

ipv6:
	ORB $0x30, 1(DX)
	JMP next

unmarkable:
	MOVQ R8, CX
	SUBQ records_base+32(FP), CX
	SHRQ $6, CX
	BTRQ CX, R11
	JMP  next

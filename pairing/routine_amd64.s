//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

// Where fields of other packages' types are.
#define REF       8  // bytes of a flowtable.Ref, whose Index is the first field
#define RECORD    64 // bytes of a packet.Record
#define PSN       48
#define LEN       52
#define SRCPORT   56
#define OPCODE    58

// func countRoutine(tracks *track, states unsafe.Pointer, roles *[256]packet.Role, flows []flowtable.Ref, packets []packet.Record, from int) int
//
//	DI   tracks           AX   track of packet n
//	SI   packet n         DX   its flow's state, lower half
//	R8   flows            R12  its length
//	R9   states           R13  its role
//	R10  len(flows)       R14  its PSN
//	R11  roles            BX   n
TEXT ·countRoutine(SB), NOSPLIT, $0-88
	MOVQ tracks+0(FP), DI
	MOVQ states+8(FP), R9
	MOVQ roles+16(FP), R11
	MOVQ flows_base+24(FP), R8
	MOVQ flows_len+32(FP), R10
	MOVQ packets_base+48(FP), SI
	MOVQ from+72(FP), BX
	MOVQ BX, AX
	IMULQ $RECORD, AX
	ADDQ AX, SI

packet:
	MOVL    (R8)(BX*REF), AX
	MOVQ    AX, CX
	SHLQ    $const_trackShift, AX
	SHLQ    $const_strideShift, CX
	ADDQ    DI, AX
	MOVL    (R9)(CX*1), DX
	CMPL    DX, track_known(AX)
	JNE     done
	MOVWLZX track_due(AX), CX
	SUBW    track_packets(AX), CX
	CMPW    CX, $1
	JLE     done
	MOVL    LEN(SI), R12
	CMPL    R12, $const_longFrame
	JCC     done
	MOVBLZX OPCODE(SI), R13
	MOVBLZX (R11)(R13*1), R13
	MOVWLZX SRCPORT(SI), R14
	CMPW    R14, track_port(AX)
	JNE     done
	MOVL    PSN(SI), R14
	CMPL    R13, $const_request
	JNE     response
	CMPL    R14, track_last(AX)
	JNE     ahead

count:
	INCL track_packets(AX)
	ADDL R12, track_bytes(AX)
	ADDQ $RECORD, SI
	INCQ BX
	CMPQ BX, R10
	JLT  packet

done:
	MOVQ BX, ret+80(FP)
	RET

ahead:
	MOVL track_last(AX), R15
	MOVL R14, CX
	SUBL R15, CX
	XORL R14, R15
	ORL  R15, CX
	CMPL CX, $const_coarse
	JCC  requestWaits
	ANDL $const_usableMask, DX
	CMPL DX, $const_usable
	JNE  requestWaits

last:
	MOVL R14, track_last(AX)
	JMP  count

requestWaits:
	CMPL track_known(AX), $const_knownBit
	JNE  done
	CMPL track_slot(AX), $0
	JNE  done
	JMP  last

response:
	CMPL  R13, $const_response
	JNE   done
	MOVL  track_acked(AX), CX
	TESTL CX, CX
	JPL   responseWaits          // without ackedBit
	SUBL  CX, R14
	ADDL  $const_behind, R14
	ANDL  $const_psnMask, R14
	CMPL  R14, $const_nearHighest
	JLS   count

responseWaits:
	CMPL track_known(AX), $const_knownBit
	JNE  done
	CMPL track_slot(AX), $0
	JNE  done
	JMP  count

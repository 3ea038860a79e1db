//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

// func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64)
//
// Three passes over the burst. The first hashes each packet and prefetches its bucket. The second finds the likely entry in the bucket and
// prefetches it, with the caller's element beside it. The third compares the packet's key with the entry's. So memory is fetched for all packets
// at a time. It is fetched into the second-level cache: the processor can wait for more lines there than for the nearest cache, and a pass
// doesn't stop when it has asked for too many.
//
//	DI   t                   R8   number of buckets
//	SI   packet i            R9   buckets
//	R11  Ref of packet i     R10  entries
//	BX   i                   R12  now
//	R15  missed              R13  a flow last seen before this time is idle
TEXT ·lookupFirst(SB), NOSPLIT, $0-72
	MOVQ t+0(FP), DI
	MOVQ packets_base+8(FP), SI
	MOVQ now+32(FP), R12
	MOVQ out_base+40(FP), R11
	MOVQ Reader_buckets+8(DI), R8
	MOVQ Reader_buckets(DI), R9
	MOVQ Reader_entries(DI), R10
	MOVQ packets_len+16(FP), R15
	XORL BX, BX

hash:
	// DX and the other operand are the factors of each product. AX and CX are the folded products of the addresses, then AX is the hash.
	MOVQ  0(SI), DX
	MOVQ  8(SI), AX
	XORQ  Reader_secret+0(DI), DX
	XORQ  Reader_secret+8(DI), AX
	MULXQ AX, AX, CX
	MOVQ  16(SI), DX
	XORQ  CX, AX
	MOVQ  24(SI), CX
	XORQ  Reader_secret+16(DI), DX
	XORQ  Reader_secret+24(DI), CX
	MULXQ CX, CX, DX
	XORQ  DX, CX
	MOVQ  32(SI), DX
	XORQ  Reader_secret+32(DI), DX
	XORQ  AX, DX
	XORQ  40(SI), CX
	XORQ  Reader_secret+40(DI), CX
	MULXQ CX, CX, AX
	XORQ  CX, AX
	MOVQ  AX, Table_hashes(DI)(BX*8)
	SHRQ  $32, AX
	IMULQ R8, AX
	SHRQ  $32, AX
	SHLQ  $6, AX
	PREFETCHT1 (R9)(AX*1)
	ADDQ  $64, SI
	INCQ  BX
	CMPQ  BX, R15
	JLT   hash

	MOVQ Reader_beside(DI), R14
	XORL BX, BX
	VPCMPEQW X1, X1, X1
	VPSRLW $15, X1, X1

pick:
	// AX is the bucket. Bit 16 of DX makes the flow None if no tag is equal: see bucket.flows.
	VPBROADCASTW Table_hashes(DI)(BX*8), X0
	MOVL      (Table_hashes+4)(DI)(BX*8), AX
	IMULQ     R8, AX
	SHRQ      $32, AX
	SHLQ      $6, AX
	ADDQ      R9, AX
	VPOR      X1, X0, X0
	VPCMPEQW  bucket_tags(AX), X0, X0
	VPMOVMSKB X0, DX
	ORL       $0x10000, DX
	BSFL      DX, DX
	MOVL      bucket_flows(AX)(DX*2), CX
	MOVL      CX, Table_candidates(DI)(BX*4)
	SHLQ      $5, CX
	PREFETCHT1 (R10)(CX*2)
	PREFETCHT1 (R14)(CX*1)
	INCQ      BX
	CMPQ      BX, R15
	JLT       pick

	MOVQ packets_base+8(FP), SI
	MOVQ R15, R8
	MOVQ R12, R13
	SUBQ Table_lasting(DI), R13
	XORL BX, BX
	XORL R15, R15

compare:
	// AX is the index of the entry, DX the entry.
	MOVL    Table_candidates(DI)(BX*4), AX
	MOVQ    AX, DX
	SHLQ    $6, DX
	ADDQ    R10, DX
	VMOVDQU 0(SI), Y0
	VMOVDQU 32(SI), X1
	VPXOR   (entry_key+0)(DX), Y0, Y0
	VPXOR   (entry_key+32)(DX), X1, X1
	VPOR    Y0, Y1, Y0
	VPTEST  Y0, Y0
	JNE     miss
	CMPQ    entry_lastSeen(DX), R13
	JLT     miss
	MOVQ    R12, entry_lastSeen(DX)
	MOVL    (entry_state+4)(DX), DX
	MOVL    AX, Ref_Index(R11)(BX*8)
	MOVL    DX, Ref_Generation(R11)(BX*8)

next:
	ADDQ $64, SI
	INCQ BX
	CMPQ BX, R8
	JLT  compare
	VZEROUPPER
	MOVQ R15, missed+64(FP)
	RET

miss:
	BTSQ BX, R15
	JMP  next

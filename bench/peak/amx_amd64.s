#include "textflag.h"

// The loops of amx_amd64.go: a round is four products of tiles, two of A by two of B. The Go assembler lacks these
// instructions.

#define LDTILECFG_AX BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define TILERELEASE BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0
#define TILEZERO(t) BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $(0xc0+8*t)
// t = the rows at SI, DX bytes apart
#define TILELOADD(t) BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $(0x04+8*t); BYTE $0x16
#define TDPBF16PS(d, a, b) BYTE $0xc4; BYTE $0xe2; BYTE $(0x7a-8*b); BYTE $0x5c; BYTE $(0xc0+8*d+a)
#define TDPBSSD(d, a, b) BYTE $0xc4; BYTE $0xe2; BYTE $(0x7b-8*b); BYTE $0x5e; BYTE $(0xc0+8*d+a)

#define BEGIN \
	MOVQ rounds+0(FP), CX; \
	MOVQ data+8(FP), SI; \
	MOVQ config+16(FP), AX; \
	MOVQ $64, DX; \
	LDTILECFG_AX; \
	TILEZERO(0); TILEZERO(1); TILEZERO(2); TILEZERO(3); \
	TILELOADD(4); ADDQ $1024, SI; \
	TILELOADD(5); ADDQ $1024, SI; \
	TILELOADD(6); ADDQ $1024, SI; \
	TILELOADD(7)

// func amxBF16(rounds int, data *byte, config *byte)
TEXT ·amxBF16(SB), NOSPLIT, $0-24
	BEGIN

round:
	TDPBF16PS(0, 4, 6)
	TDPBF16PS(1, 4, 7)
	TDPBF16PS(2, 5, 6)
	TDPBF16PS(3, 5, 7)
	DECQ CX
	JG round
	TILERELEASE
	RET

// func amxI8(rounds int, data *byte, config *byte)
TEXT ·amxI8(SB), NOSPLIT, $0-24
	BEGIN

round:
	TDPBSSD(0, 4, 6)
	TDPBSSD(1, 4, 7)
	TDPBSSD(2, 5, 6)
	TDPBSSD(3, 5, 7)
	DECQ CX
	JG round
	TILERELEASE
	RET

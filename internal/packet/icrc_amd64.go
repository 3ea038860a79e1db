//go:build !purego

package packet

// foldCRC is seededCRC in assembly. len(b) is a multiple of 4, and at least 16.
//
//go:noescape
func foldCRC(b []byte) uint32

// canFold reports whether the processor has foldCRC's instructions.
func canFold() bool

//go:build !amd64 || purego

package packet

func foldCRC(b []byte) uint32 { return seededCRC(b) }

func canFold() bool { return false }

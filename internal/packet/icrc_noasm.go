//go:build !amd64 || purego || race

package packet

import "unsafe"

const folds = false

func putFoldedCRC(b *byte, n int) { putSeededCRC(unsafe.Slice(b, n+ICRCLen)) }

//go:build !amd64 || purego || race

package account

import "sync/atomic"

// store64 is the assembly's specification.
func store64(word *atomic.Int64, value int64) { word.Store(value) }

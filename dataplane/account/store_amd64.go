//go:build !purego && !race

package account

import "sync/atomic"

// store64 stores a word that one worker writes and others read. Of atomic.Int64's Store it has what readers need: they read the old value or the
// new one, and after all that was stored before. A processor of this architecture gives that to any store. Store also waits until all stores
// have reached the cache, which takes longer than choosing a sender.
//
//go:noescape
func store64(word *atomic.Int64, value int64)

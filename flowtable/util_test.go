package flowtable

import "unsafe"

// octets is a key's memory.
func octets(k *Key) *[8 * keyWords]byte { return (*[8 * keyWords]byte)(unsafe.Pointer(k)) }

// padKey puts something into the padding.
func padKey(k *Key) { octets(k)[8*keyWords-1] = 0x55 }

// flip flips a bit of a key's memory.
func flip(k *Key, bit int) { octets(k)[bit/8] ^= 1 << (bit % 8) }

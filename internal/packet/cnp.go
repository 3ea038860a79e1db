package packet

// CNPReservedLen is the length in octets of what a CNP has between its BTH and the ICRC (IBTA Annex A17, draft-xiao-fast-cnp figure 2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                                                               +
//	|                        Reserved (16 octets)                   |
//	+                                                               +
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Senders put zeros, receivers ignore them. A Fast CNP has them too; a Long-haul CNP and a PPFC notification have their fields in
// their place.
const CNPReservedLen = 16

// Package packet reads and writes the headers of RoCEv2 traffic and its congestion notifications: Ethernet with VLAN tags, IPv4, IPv6 with
// extension headers, UDP, ICMPv6 and the InfiniBand transport headers, one header a file. Parse finds all of them in one pass over a frame;
// the Put methods write a header at the front of a caller's buffer. Fields on the wire are in network byte order, Go values in host byte
// order. The package never allocates, has no state, makes no decisions about frames and returns no errors: a frame that it doesn't
// understand is of Kind Other or IP.
package packet

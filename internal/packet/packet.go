// Package packet reads and writes the headers that RoCEv2 traffic and its congestion notifications are made of: Ethernet with
// VLAN tags, IPv4, IPv6 with extension headers, UDP, ICMPv6 and the InfiniBand transport headers, one header a file. Parse finds
// all of them in one pass over a frame; the Put methods write a header at the front of a caller's buffer. Octets on the wire
// are in network byte order, Go values in host byte order. The package never allocates, keeps no state, takes no decision
// about a frame and returns no error: what it doesn't understand is of Kind Other or IP.
package packet

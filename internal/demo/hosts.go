package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// host is a machine in the data centre that sends what one of the captures holds.
type host struct {
	name    string
	capture string
	addr    netip.Addr // as it is sent
	as      netip.Addr // as it was captured
	accepts string     // what notification the gateway's endpoints grant it; "" for none
	pairs   []qpPair
	frames  [][]byte
}

// qpPair is one connection's true QP numbers, as the capture's notes have them.
type qpPair struct {
	receiver   netip.Addr
	qp, peerQP uint32 // the host's, the receiver's
}

// The captures come from one pair of hosts. So that each notification has a sender of its own, two of them are sent from another
// address, with checksum and ICRC computed anew; the rest is sent octet for octet.
func plan() []host {
	return []host{
		{name: "dc-a", capture: "rc_write_q8_v4", addr: ip("198.18.0.2"), as: ip("198.18.0.2"), accepts: "long-haul-cnp"},
		{name: "dc-b", capture: "rc_send_v6", addr: ip("fd00:18::2"), as: ip("fd00:18::2"), accepts: "fast-cnp"},
		{name: "dc-c", capture: "rc_pingpong_v6", addr: ip("fd00:18::3"), as: ip("fd00:18::2"), accepts: "long-haul-cnp-icmpv6"},
		{name: "dc-d", capture: "uc_pingpong_v4", addr: ip("198.18.0.4"), as: ip("198.18.0.2")},
	}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// gateway4 and gateway6 are the gateway's own addresses: the sources of its notifications.
var gateway4, gateway6 = ip("198.18.0.254"), ip("fd00:18::fe")

// loadHosts reads each host's capture and the notes beside it.
func loadHosts(folder string) ([]host, error) {
	hosts := plan()
	for i := range hosts {
		h := &hosts[i]
		if err := h.loadPairs(filepath.Join(folder, h.capture+".json")); err != nil {
			return nil, err
		}
		frames, err := readPcap(filepath.Join(folder, h.capture+".pcap"))
		if err != nil {
			return nil, err
		}
		for _, f := range frames {
			if f, ok := h.outgoing(f.data); ok {
				h.frames = append(h.frames, f)
			}
		}
		if len(h.frames) == 0 {
			return nil, fmt.Errorf("%s.pcap holds no RoCEv2 frame from %s", h.capture, h.as)
		}
	}
	return hosts, nil
}

func (h *host) loadPairs(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var notes struct {
		Connections []struct {
			ClientIP  netip.Addr `json:"client_ip"`
			ServerIP  netip.Addr `json:"server_ip"`
			ClientQPN uint32     `json:"client_qpn"`
			ServerQPN uint32     `json:"server_qpn"`
		}
	}
	if err := json.Unmarshal(text, &notes); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range notes.Connections {
		if c.ClientIP != h.as {
			return fmt.Errorf("%s: a connection of %s, want only those of %s", name, c.ClientIP, h.as)
		}
		h.pairs = append(h.pairs, qpPair{c.ServerIP, c.ClientQPN, c.ServerQPN})
	}
	return nil
}

// outgoing gives the frame as the host sends it; false for a frame that another host sent, or that isn't RoCEv2.
func (h *host) outgoing(frame []byte) ([]byte, bool) {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	if p.Kind != packet.RoCEv2 || p.Src != packet.AddrFrom(h.as) {
		return nil, false
	}
	if h.addr != h.as {
		frame = readdress(frame, &p, h.addr)
	}
	return frame, true
}

// readdress gives a copy of a RoCEv2 frame with another source address. The MAC address's last octet follows the IP address's, so
// that a notification that comes back shows whom it was for. A UDP checksum stays: Soft-RoCE sends none.
func readdress(frame []byte, p *packet.Parsed, to netip.Addr) []byte {
	f := slices.Clone(frame)
	octets := to.AsSlice()
	f[11] = octets[len(octets)-1]
	if p.Family == 4 {
		copy(f[p.L3+12:], octets)
		f[p.L3+10], f[p.L3+11] = 0, 0
		sum := checksum(f[p.L3:p.L4])
		f[p.L3+10], f[p.L3+11] = byte(sum>>8), byte(sum)
	} else {
		copy(f[p.L3+8:], octets)
	}
	packet.PutICRC(f, int(p.L3), int(p.BTH), int(p.ICRC), true)
	return f
}

// checksum is the Internet checksum (RFC 1071) of an even number of octets.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// captured is one frame of a capture file.
type captured struct {
	at   int64 // nanoseconds since 1970
	data []byte
}

// readPcap reads a classic pcap file of Ethernet frames. A frame that the capture cut short is an error.
func readPcap(name string) ([]captured, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var frames []captured
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s, after %d frames: %w", name, len(frames), err)
		}
		if info.CaptureLength < info.Length {
			return nil, fmt.Errorf("%s, frame %d: %d of %d octets captured, want all", name, len(frames)+1, info.CaptureLength, info.Length)
		}
		frames = append(frames, captured{info.Timestamp.UnixNano(), data})
	}
}

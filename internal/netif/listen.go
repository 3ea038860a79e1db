//go:build linux

package netif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	macs          = 12 // offset of the first tag
	tagLen        = 4
	listenMemory  = 64 << 20 // bytes of frames that wait in the kernel
	statusVLAN    = 0x10     // TP_STATUS_VLAN_VALID
	statusTPID    = 0x40     // TP_STATUS_VLAN_TPID_VALID
	customerVLAN  = 0x8100
	controlLength = 128
)

// Listener receives copies of the frames that arrive at an interface. The interface still works as before; while a Listener is open, it is promiscuous.
type Listener struct {
	FD      int // to poll
	name    string
	buffer  [Captured]byte
	control [controlLength]byte
}

// Copy is a frame that a Listener received.
type Copy struct {
	Time   time.Time // the kernel's
	Octets []byte    // valid until the next Receive
	Length uint32    // of the frame
}

// Listen opens a Listener. It needs CAP_NET_RAW.
func Listen(name string) (*Listener, error) {
	s, err := Read(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("interface %s: opening a packet socket: %w", name, err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(s.Index), Type: unix.PACKET_MR_PROMISC}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}), Ifindex: s.Index}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("interface %s: listening: %w", name, err), unix.Close(fd))
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, listenMemory/2) != nil { // the kernel doubles it
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, listenMemory/2) // what is allowed without CAP_NET_ADMIN
	}
	return &Listener{FD: fd, name: name}, nil
}

// Receive returns the next frame; false if none waits.
func (l *Listener) Receive() (c Copy, ok bool, err error) {
	n, used, _, _, err := unix.Recvmsg(l.FD, l.buffer[tagLen:], l.control[:], unix.MSG_TRUNC)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return c, false, nil
	case err != nil:
		return c, false, fmt.Errorf("interface %s: receiving: %w", l.name, err)
	}
	c = Copy{Octets: l.buffer[tagLen:min(tagLen+n, len(l.buffer))], Length: uint32(n)}
	return l.describe(c, used)
}

// describe reads the control messages of a frame: its time, and the tag that the kernel has removed from it.
func (l *Listener) describe(c Copy, used int) (Copy, bool, error) {
	messages, err := unix.ParseSocketControlMessage(l.control[:used])
	if err != nil {
		return c, false, fmt.Errorf("interface %s: control messages of a frame: %w", l.name, err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})):
			c.Time = time.Unix((*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Unix())
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			if a := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0])); a.Status&statusVLAN != 0 && len(c.Octets) >= macs {
				c = l.restoreTag(c, a)
			}
		}
	}
	return c, true, nil
}

// restoreTag puts the tag back in its place.
func (l *Listener) restoreTag(c Copy, a *unix.TpacketAuxdata) Copy {
	tpid := uint16(customerVLAN)
	if a.Status&statusTPID != 0 {
		tpid = a.Vlan_tpid
	}
	copy(l.buffer[:macs], c.Octets[:macs])
	binary.BigEndian.PutUint16(l.buffer[macs:], tpid)
	binary.BigEndian.PutUint16(l.buffer[macs+2:], a.Vlan_tci)
	c.Octets = l.buffer[:tagLen+len(c.Octets)]
	c.Length += tagLen
	return c
}

// Lost is how many frames the kernel has dropped since the last call, because they waited too long.
func (l *Listener) Lost() uint64 {
	s, err := unix.GetsockoptTpacketStats(l.FD, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(s.Drops)
}

// Close closes it.
func (l *Listener) Close() error { return unix.Close(l.FD) }

package rdma

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// Commands and attributes of rdma_netlink.h, enum rdma_nldev_command and enum rdma_nldev_attr.
const (
	client       = 5 // RDMA_NL_NLDEV
	cmdDevice    = 1
	cmdResources = 9
	cmdQPs       = 10
	cmdCMIDs     = 11

	attrDeviceIndex  = 1
	attrDeviceName   = 2
	attrPort         = 3
	attrSummary      = 15
	attrSummaryEntry = 16
	attrSummaryName  = 17
	attrSummaryCount = 18
	attrQPs          = 19
	attrQP           = 20
	attrLocalQP      = 21
	attrRemoteQP     = 22
	attrType         = 26
	attrState        = 27
	attrCMIDs        = 30
	attrCMID         = 31
	attrSource       = 33
	attrDestination  = 34
	attrProtocol     = 67
)

const (
	attrHeader = 4
	typeMask   = 0x3fff // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
)

// each calls f for each attribute of a message or of a nested attribute, until f returns an error. Numbers have the host's byte order.
func each(b []byte, f func(kind uint16, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < attrHeader {
			return fmt.Errorf("%d bytes after the last attribute, expected at least %d", len(b), attrHeader)
		}
		length := int(binary.NativeEndian.Uint16(b))
		if length < attrHeader || length > len(b) {
			return fmt.Errorf("an attribute of %d bytes, expected %d to %d", length, attrHeader, len(b))
		}
		if err := f(binary.NativeEndian.Uint16(b[2:])&typeMask, b[attrHeader:length]); err != nil {
			return err
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return nil
}

// number reads an attribute of 1, 4 or 8 bytes.
func number(b []byte, to *uint32) error {
	switch len(b) {
	case 1:
		*to = uint32(b[0])
	case 4:
		*to = binary.NativeEndian.Uint32(b)
	case 8:
		*to = uint32(min(binary.NativeEndian.Uint64(b), 1<<32-1))
	default:
		return fmt.Errorf("a number of %d bytes, expected 1, 4 or 8", len(b))
	}
	return nil
}

func text(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// parseDevice reads a message of the answer to cmdDevice.
func parseDevice(b []byte) (d Device, err error) {
	err = each(b, func(kind uint16, v []byte) error {
		switch kind {
		case attrDeviceIndex:
			return number(v, &d.Index)
		case attrDeviceName:
			d.Name = text(v)
		case attrPort:
			return number(v, &d.Ports)
		case attrProtocol:
			d.Protocol = text(v)
		}
		return nil
	})
	if err == nil && d.Name == "" {
		err = fmt.Errorf("a device without a name")
	}
	return d, err
}

// parseCount reads the number of QPs from a message of the answer to cmdResources.
func parseCount(b []byte) (device, qps uint32, err error) {
	err = each(b, func(kind uint16, v []byte) error {
		switch kind {
		case attrDeviceIndex:
			return number(v, &device)
		case attrSummary:
			return each(v, func(_ uint16, entry []byte) error {
				var name string
				var n uint32
				err := each(entry, func(kind uint16, v []byte) error {
					switch kind {
					case attrSummaryName:
						name = text(v)
					case attrSummaryCount:
						return number(v, &n)
					}
					return nil
				})
				if name == "qp" {
					qps = n
				}
				return err
			})
		}
		return nil
	})
	return device, qps, err
}

// entries calls f for each entry of a table in a message, with the index of the message's device.
func entries(b []byte, table uint16, f func(device uint32, entry []byte) error) error {
	var device uint32
	return each(b, func(kind uint16, v []byte) error {
		switch kind {
		case attrDeviceIndex: // comes first
			return number(v, &device)
		case table:
			return each(v, func(_ uint16, entry []byte) error { return f(device, entry) })
		}
		return nil
	})
}

// eachQP reads a message of the answer to cmdQPs.
func eachQP(b []byte, f func(QP)) error {
	return entries(b, attrQPs, func(device uint32, entry []byte) error {
		q := QP{Device: device}
		var transport, state uint32
		err := each(entry, func(kind uint16, v []byte) error {
			switch kind {
			case attrPort:
				return number(v, &q.Port)
			case attrLocalQP:
				return number(v, &q.Local)
			case attrRemoteQP:
				return number(v, &q.Remote)
			case attrType:
				return number(v, &transport)
			case attrState:
				return number(v, &state)
			}
			return nil
		})
		if q.Transport, q.State = Transport(transport), State(state); err == nil {
			f(q)
		}
		return err
	})
}

// eachCMID reads a message of the answer to cmdCMIDs, and passes the IDs that have a QP.
func eachCMID(b []byte, f func(CMID)) error {
	return entries(b, attrCMIDs, func(device uint32, entry []byte) error {
		c := CMID{Device: device}
		err := each(entry, func(kind uint16, v []byte) error {
			switch kind {
			case attrLocalQP:
				return number(v, &c.QP)
			case attrSource:
				c.Source = address(v)
			case attrDestination:
				c.Destination = address(v)
			}
			return nil
		})
		if err == nil && c.QP != 0 {
			f(c)
		}
		return err
	})
}

// address reads a struct sockaddr_storage.
func address(b []byte) netip.Addr {
	const inet, inet6 = 2, 10
	if len(b) >= 8 && binary.NativeEndian.Uint16(b) == inet {
		return netip.AddrFrom4([4]byte(b[4:]))
	}
	if len(b) >= 24 && binary.NativeEndian.Uint16(b) == inet6 {
		return netip.AddrFrom16([16]byte(b[8:])).Unmap()
	}
	return netip.Addr{}
}

//go:build !nodpdk

package dpdk

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Where an af_packet interface's frames must fit (see the package comment): the ring's frames hold jumbo frames of MTU 9000, and
// four of them make one of the kernel's blocks.
const (
	afPacketFrame = 16384
	afPacketBlock = 65536
	// afPacketMaxFrame is the largest ring frame whose contents still fit one mbuf, whose lengths are 16 bits.
	afPacketMaxFrame = 32768
	// afPacketRxHead is what the kernel puts in front of a received frame: TPACKET_ALIGN(TPACKET2_HDRLEN + 16) - 14.
	afPacketRxHead = 66
	// afPacketMbufHead is what the PMD subtracts from framesz when it compares it with the mbuf: TPACKET2_HDRLEN - 20.
	afPacketMbufHead = 32
	// etherHead is the Ethernet header, and the second of two tags; the kernel keeps the first one beside the frame.
	etherHead = 14 + 4
)

var (
	pciAddress = regexp.MustCompile(`^(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
	vdevName   = regexp.MustCompile(`^(net|eth)_[a-z]+(_[a-z]+)*[0-9]*([_.-]?[A-Za-z0-9]+)*$`)
)

// device is a port's device string, taken apart: what EAL's -a (a PCI address) or --vdev takes.
type device struct {
	name   string // the PCI address in its long form, or the virtual device's name
	args   string // after the first comma
	pci    bool
	iface  string // net_af_packet: the kernel's interface
	frame  int    // net_af_packet: octets of a ring frame
	queues int    // net_af_packet: pairs of queues
}

// devargs is the string rte_dev_probe takes.
func (d device) devargs() string {
	if d.args == "" {
		return d.name
	}
	return d.name + "," + d.args
}

// is tells whether the device belongs to a virtual driver, by either of its names: net_x or eth_x.
func (d device) is(driver string) bool {
	return !d.pci && (strings.HasPrefix(d.name, "net_"+driver) || strings.HasPrefix(d.name, "eth_"+driver))
}

// room is how many octets of data a mbuf must have for the device, 0 where it has no wish of its own.
func (d device) room() int {
	if d.iface == "" {
		return 0
	}
	return d.frame - afPacketMbufHead
}

// holds is how many frames the device can keep in its own queues, of rx and tx descriptors a pair. The copying devices keep none.
func (d device) holds(pairs, rx, tx int) int {
	for _, driver := range []string{"af_packet", "null", "pcap"} {
		if d.is(driver) {
			return 0
		}
	}
	return pairs * (rx + tx)
}

// parseDevice takes a port's device string apart and adds what net_af_packet needs and the operator left out.
func parseDevice(s string, workers int) (device, error) {
	name, args, _ := strings.Cut(s, ",")
	switch {
	case pciAddress.MatchString(name):
		if strings.Count(name, ":") == 1 {
			name = "0000:" + name
		}
		return device{name: strings.ToLower(name), args: args, pci: true}, nil
	case !vdevName.MatchString(name):
		return device{}, fmt.Errorf("device %q: expected a PCI address (0000:3b:00.0) or a virtual device with its arguments "+
			"(net_af_packet0,iface=eth0)", s)
	}
	d := device{name: name, args: args}
	if d.is("af_packet") {
		return d, d.fitAFPacket(workers)
	}
	return d, nil
}

// fitAFPacket reads iface, framesz, blocksz and qpairs and appends those that are missing.
func (d *device) fitAFPacket(workers int) error {
	given := map[string]string{}
	for _, kv := range strings.Split(d.args, ",") {
		k, v, _ := strings.Cut(kv, "=")
		given[k] = v
	}
	if d.iface = given["iface"]; d.iface == "" {
		return fmt.Errorf("device %q: net_af_packet needs the interface it is to use: %s,iface=eth0", d.devargs(), d.name)
	}
	number := func(key string, missing int) (int, error) {
		v, ok := given[key]
		if !ok {
			d.args += "," + key + "=" + strconv.Itoa(missing)
			return missing, nil
		}
		n, err := strconv.Atoi(v)
		if err != nil || n <= 0 {
			return 0, fmt.Errorf("device %q: %s is %q, expected a whole number above 0", d.devargs(), key, v)
		}
		return n, nil
	}
	var err error
	if d.frame, err = number("framesz", afPacketFrame); err != nil {
		return err
	}
	if d.frame > afPacketMaxFrame {
		return fmt.Errorf("device %q: framesz is %d, expected at most %d", d.devargs(), d.frame, afPacketMaxFrame)
	}
	if _, err = number("blocksz", afPacketBlock); err != nil {
		return err
	}
	if d.queues, err = number("qpairs", workers); err != nil {
		return err
	}
	if d.queues != workers {
		return fmt.Errorf("device %q: qpairs is %d but there are %d workers: the kernel spreads frames over all pairs and each must "+
			"have its worker; leave qpairs out", d.devargs(), d.queues, workers)
	}
	return nil
}

// largestMTU is the largest MTU whose frames the device's ring takes whole.
func (d device) largestMTU() int { return d.frame - afPacketRxHead - etherHead }

//go:build !nodpdk

package dpdk

/*
#include <stdlib.h>
#include "eal.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Port is one device (an ethdev), with one pair of queues a worker.
type Port struct {
	eal     *EAL
	cfg     PortConfig
	device  device
	id      C.uint16_t
	handle  *C.struct_rte_device
	driver  string
	mac     net.HardwareAddr
	started bool
	promisc bool // switched on here
	rss     bool
	lent    bool // it was there before, and stays
	longest int  // octets of the longest frame it sends
}

// attachPort has the EAL probe a device, or finds the port that somebody else made of it: a Ring, or eal_args with --vdev.
func attachPort(e *EAL, cfg PortConfig, d device) (*Port, error) {
	p := &Port{eal: e, cfg: cfg, device: d}
	name, args := C.CString(d.name), C.CString(d.devargs())
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(args))
	C.cnp_log_clear()
	p.lent = C.rte_eth_dev_get_port_by_name(name, &p.id) == 0
	if !p.lent {
		if ret := C.rte_dev_probe(args); ret != 0 {
			return nil, fmt.Errorf("the device can't be opened%s%s", firstLog(), d.hint())
		}
		if C.rte_eth_dev_get_port_by_name(name, &p.id) != 0 {
			return nil, fmt.Errorf("the device was probed, but no driver made a port of it%s", firstLog())
		}
	}
	var info C.struct_rte_eth_dev_info
	if ret := C.rte_eth_dev_info_get(p.id, &info); ret != 0 {
		return nil, fmt.Errorf("the device does not say what it can do: %w", unix.Errno(-ret))
	}
	p.handle, p.driver = info.device, C.GoString(info.driver_name)
	var mac C.struct_rte_ether_addr
	if C.rte_eth_macaddr_get(p.id, &mac) == 0 {
		p.mac = C.GoBytes(unsafe.Pointer(&mac.addr_bytes[0]), 6)
	}
	return p, nil
}

// hint says what most often stands behind a device that can't be opened.
func (d device) hint() string {
	switch {
	case d.pci:
		return " (is it bound to vfio-pci, and free?)"
	case d.is("af_packet"):
		return " (CAP_NET_RAW, CAP_NET_ADMIN and CAP_IPC_LOCK, or a large RLIMIT_MEMLOCK, are needed; is framesz a part of blocksz, " +
			"and blocksz whole pages?)"
	case d.is("tap"):
		return " (CAP_NET_ADMIN and /dev/net/tun are needed)"
	case d.is("virtio_user"):
		return " (does its path= exist, and does somebody serve it?)"
	}
	return " (see the driver's page in DPDK's NIC guide for its arguments)"
}

// Name is the operator's, Driver DPDK's (net_af_packet, mlx5_pci).
func (p *Port) Name() string   { return p.cfg.Name }
func (p *Port) Driver() string { return p.driver }

// MAC is the device's address.
func (p *Port) MAC() net.HardwareAddr { return p.mac }

// SymmetricRSS tells whether the device itself spreads frames over the workers' queues, both directions of a flow alike.
func (p *Port) SymmetricRSS() bool { return p.rss }

// setup configures the device, sets up a pair of queues a worker and starts it.
func (p *Port) setup(pool *Pool, workers int) error {
	var info C.struct_rte_eth_dev_info
	if ret := C.rte_eth_dev_info_get(p.id, &info); ret != 0 {
		return fmt.Errorf("the device does not say what it can do: %w", unix.Errno(-ret))
	}
	if err := p.fits(&info, pool, workers); err != nil {
		return err
	}
	C.cnp_log_clear()
	if err := p.configure(&info, workers); err != nil {
		return err
	}
	rx, tx := C.uint16_t(rxDescriptors), C.uint16_t(txDescriptors)
	if ret := C.rte_eth_dev_adjust_nb_rx_tx_desc(p.id, &rx, &tx); ret != 0 {
		return fmt.Errorf("choosing the number of descriptors: %w%s", unix.Errno(-ret), firstLog())
	}
	var err error
	if p.longest, err = p.longestFrame(); err != nil {
		return err
	}
	socket := C.uint(C.rte_eth_dev_socket_id(p.id))
	for q := range C.uint16_t(workers) {
		if ret := C.rte_eth_rx_queue_setup(p.id, q, rx, socket, &info.default_rxconf, pool.pool); ret != 0 {
			return fmt.Errorf("rx queue %d of %d descriptors: %w%s", q, rx, unix.Errno(-ret), firstLog())
		}
		if ret := C.rte_eth_tx_queue_setup(p.id, q, tx, socket, &info.default_txconf); ret != 0 {
			return fmt.Errorf("tx queue %d of %d descriptors: %w%s", q, tx, unix.Errno(-ret), firstLog())
		}
	}
	if ret := C.rte_eth_dev_start(p.id); ret != 0 {
		return fmt.Errorf("starting the device: %w%s", unix.Errno(-ret), firstLog())
	}
	p.started = true
	if err := p.receiveAll(); err != nil {
		return err
	}
	if p.device.iface != "" {
		for q := range C.uint16_t(workers) { // what the sockets saw of other interfaces before they were bound
			C.cnp_discard(p.id, q, rxDescriptors)
		}
	}
	return nil
}

// fits compares what is asked for with what the device can do.
func (p *Port) fits(info *C.struct_rte_eth_dev_info, pool *Pool, workers int) error {
	if pairs := int(min(info.max_rx_queues, info.max_tx_queues)); pairs < workers {
		return fmt.Errorf("the device has %d pairs of queues for %d workers: configure fewer workers, or give the device more queues",
			pairs, workers)
	}
	if int(info.min_rx_bufsize) > pool.room {
		return fmt.Errorf("the device wants buffers of %d octets, but they have %d", info.min_rx_bufsize, pool.room)
	}
	if !p.setsMTU() || p.cfg.MTU == 0 {
		return nil
	}
	most := int(info.max_mtu)
	if info.max_mtu == math.MaxUint16 { // the device only says what its frames may have, FCS included
		most = min(most, int(info.max_rx_pktlen)-14-4)
	}
	if mtu := p.cfg.MTU; mtu < int(info.min_mtu) || mtu > most {
		return fmt.Errorf("the device takes an MTU from %d to %d, not %d", info.min_mtu, most, mtu)
	}
	return nil
}

// setsMTU tells whether the device takes its MTU through ethdev, which af_packet's refuses above 1500.
func (p *Port) setsMTU() bool { return !p.device.is("af_packet") }

// configure asks for the queues and, where the device can and it matters, for symmetric RSS.
func (p *Port) configure(info *C.struct_rte_eth_dev_info, workers int) error {
	var conf C.struct_rte_eth_conf
	if p.setsMTU() {
		conf.rxmode.mtu = C.uint32_t(p.cfg.MTU)
	}
	wanted := C.uint64_t(C.RTE_ETH_RSS_IP|C.RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads
	if workers > 1 && wanted != 0 {
		key := symmetricKey(int(info.hash_key_size))
		c := C.CBytes(key)
		defer C.free(c)
		conf.rxmode.mq_mode = C.RTE_ETH_MQ_RX_RSS
		conf.rx_adv_conf.rss_conf.rss_key = (*C.uint8_t)(c)
		conf.rx_adv_conf.rss_conf.rss_key_len = C.uint8_t(len(key))
		conf.rx_adv_conf.rss_conf.rss_hf = wanted
		p.rss = true
	}
	if ret := C.rte_eth_dev_configure(p.id, C.uint16_t(workers), C.uint16_t(workers), &conf); ret != 0 {
		return fmt.Errorf("configuring %d pairs of queues, MTU %d: %w%s", workers, p.cfg.MTU, unix.Errno(-ret), firstLog())
	}
	return nil
}

// symmetricKey is a Toeplitz key that repeats every 16 bits, so that exchanging source and destination leaves the hash as it is
// (Woo and Park, "Scalable TCP session monitoring with symmetric receive-side scaling", 2012).
func symmetricKey(size int) []byte {
	if size == 0 {
		size = 40 // what a device means that does not say
	}
	key := make([]byte, size)
	for i := range key {
		key[i] = [2]byte{0x6d, 0x5a}[i%2]
	}
	return key
}

// receiveAll makes the port take frames for any address: a bump in the wire has none of its own. Devices without filters don't
// offer the switches.
func (p *Port) receiveAll() error {
	already := C.rte_eth_promiscuous_get(p.id) == 1
	if p.device.iface != "" {
		n, err := readNetif(p.device.iface)
		if err != nil {
			return err
		}
		already = n.flags&unix.IFF_PROMISC != 0
	}
	if !already {
		switch ret := C.rte_eth_promiscuous_enable(p.id); {
		case ret == 0:
			p.promisc = true
		case unix.Errno(-ret) != unix.ENOTSUP:
			return fmt.Errorf("switching promiscuous mode on: %w (CAP_NET_ADMIN is needed)%s", unix.Errno(-ret), firstLog())
		}
	}
	if ret := C.rte_eth_allmulticast_enable(p.id); ret != 0 && unix.Errno(-ret) != unix.ENOTSUP {
		return fmt.Errorf("receiving all multicast frames: %w%s", unix.Errno(-ret), firstLog())
	}
	return nil
}

// longestFrame is without a limit but for tap: its PMD refuses a frame longer than MTU + 22, and with it everything behind.
func (p *Port) longestFrame() (int, error) {
	if !p.device.is("tap") {
		return math.MaxUint32, nil
	}
	var mtu C.uint16_t
	if ret := C.rte_eth_dev_get_mtu(p.id, &mtu); ret != 0 {
		return 0, fmt.Errorf("reading the MTU: %w", unix.Errno(-ret))
	}
	return int(mtu) + frameHead, nil
}

// stop throws away what waits in the device and stops it, on EAL's thread.
func (p *Port) stop(workers int) error {
	if !p.started {
		return nil
	}
	p.started = false
	if p.promisc {
		C.rte_eth_promiscuous_disable(p.id)
	}
	// Devices that pass buffers on (net_ring) would keep those; one that makes frames (net_null) would never run out.
	for q := range C.uint16_t(workers) {
		C.cnp_discard(p.id, q, 1<<16)
	}
	if ret := C.rte_eth_dev_stop(p.id); ret != 0 {
		return portError(p.cfg, fmt.Errorf("stopping the device: %w", unix.Errno(-ret)))
	}
	return nil
}

// close gives the device back, so that it can be opened again under the same name.
func (p *Port) close() error {
	if p.lent {
		return nil
	}
	var errs []error
	if ret := C.rte_eth_dev_close(p.id); ret != 0 {
		errs = append(errs, portError(p.cfg, fmt.Errorf("closing the device: %w", unix.Errno(-ret))))
	}
	if p.handle != nil {
		if ret := C.rte_dev_remove(p.handle); ret != 0 {
			errs = append(errs, portError(p.cfg, fmt.Errorf("removing the device: %w", unix.Errno(-ret))))
		}
	}
	return errors.Join(errs...)
}

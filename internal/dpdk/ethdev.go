//go:build !nodpdk

package dpdk

/*
#include <stdlib.h>
#include "batch.h"
#include "eal.h"
#include <rte_dev.h>
#include <rte_ethdev.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethdev is a port with a DPDK driver.
type ethdev struct {
	cfg       PortConfig
	device    device
	id        C.uint16_t
	handle    *C.struct_rte_device
	info      C.struct_rte_eth_dev_info
	mtu       int // asked for; 0: the device's own
	workers   int
	longest   int // bytes of the longest frame it sends
	oversized []C.uint64_t
	started   bool
	promisc   bool // switched on here
	lent      bool // it existed before, and stays
	locks     []*lock
	known     traits // of the driver
	discarded uint64 // frames that waited when the port was stopped
}

// attach makes the EAL probe a device, or finds an existing port for it: of a Ring, or of eal_args with --vdev.
func attach(cfg PortConfig, d device) (*ethdev, error) {
	p := &ethdev{cfg: cfg, device: d}
	var err error
	if p.locks, err = lockAll(d.resources()); err != nil {
		return nil, err
	}
	if err := p.probe(); err != nil {
		return nil, errors.Join(err, releaseAll(p.locks))
	}
	p.known = drivers[p.driverName()]
	return p, nil
}

func (p *ethdev) probe() error {
	d := p.device
	name, args := C.CString(d.name), C.CString(d.devargs())
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(args))
	C.cnp_log_clear()
	p.lent = C.rte_eth_dev_get_port_by_name(name, &p.id) == 0
	if !p.lent {
		if ret := C.rte_dev_probe(args); ret != 0 {
			return fmt.Errorf("the device can't be opened%s%s", firstLog(), d.hint())
		}
		if C.rte_eth_dev_get_port_by_name(name, &p.id) != 0 {
			return fmt.Errorf("the device was probed, but no driver made a port of it%s", firstLog())
		}
	}
	if ret := C.rte_eth_dev_info_get(p.id, &p.info); ret != 0 {
		return fmt.Errorf("the device does not say what it can do: %w", unix.Errno(-ret))
	}
	p.handle = p.info.device
	return nil
}

func (p *ethdev) driverName() string { return C.GoString(p.info.driver_name) }

func (p *ethdev) buffer(mtu int) int { return p.known.buffer(mtu) }

func (p *ethdev) stopped() uint64 { return p.discarded }

func (p *ethdev) numa() int { return int(C.rte_eth_dev_socket_id(p.id)) }

// setup configures the device, sets up a pair of queues a worker and starts it.
func (p *ethdev) setup(pool *Pool, workers int) (Profile, error) {
	p.workers = workers
	C.cnp_log_clear()
	if err := p.chooseMTU(); err != nil {
		return Profile{}, err
	}
	if err := p.fits(pool); err != nil {
		return Profile{}, err
	}
	spread, err := p.configure()
	if err != nil {
		return Profile{}, err
	}
	if err := p.queues(pool); err != nil {
		return Profile{}, err
	}
	if ret := C.rte_eth_dev_start(p.id); ret != 0 {
		return Profile{}, fmt.Errorf("starting the device: %w%s", unix.Errno(-ret), firstLog())
	}
	p.started = true
	if err := p.scatters(pool); err != nil {
		return Profile{}, err
	}
	if err := p.receiveAll(); err != nil {
		return Profile{}, err
	}
	p.findOversized()
	return p.profile(pool, spread)
}

// profile returns the resulting profile.
func (p *ethdev) profile(pool *Pool, spread Spread) (Profile, error) {
	var mtu C.uint16_t
	if ret := C.rte_eth_dev_get_mtu(p.id, &mtu); ret != 0 {
		return Profile{}, fmt.Errorf("reading the MTU: %w", unix.Errno(-ret))
	}
	f := Profile{Driver: p.driverName(), MTU: int(mtu), Buffer: pool.Room(), Workers: p.workers, Spread: spread}
	var mac C.struct_rte_ether_addr
	if C.rte_eth_macaddr_get(p.id, &mac) == 0 {
		f.Address = net.HardwareAddr(C.GoBytes(unsafe.Pointer(&mac.addr_bytes[0]), 6)).String()
	}
	if i, err := net.InterfaceByIndex(int(p.info.if_index)); err == nil {
		f.Interface = i.Name
	}
	// Switching on a link that is up does nothing; it is the only way to find out whether the device supports it.
	f.LinkControl = C.rte_eth_dev_set_link_up(p.id) != -C.int(unix.ENOTSUP)
	p.longest = math.MaxUint32
	if p.known.refuses {
		p.longest = int(mtu) + frameHead
		f.Longest = p.longest
	}
	f.Tags, f.ServiceTags = maxTags, maxTags
	if p.mtu != 0 {
		f.Tags = (p.mtu - p.cfg.MTU) / tagSize
		f.ServiceTags = f.Tags
	}
	f.consequences()
	return f, nil
}

// chooseMTU decides the device's MTU: the port's, and two VLAN tags, of which most devices support one or none.
func (p *ethdev) chooseMTU() error {
	if p.cfg.MTU == 0 {
		return nil
	}
	most := int(p.info.max_mtu)
	if p.info.max_mtu == math.MaxUint16 { // the device only reports the maximum frame length, including FCS
		most = min(most, int(p.info.max_rx_pktlen)-14-4)
	}
	if p.cfg.MTU < int(p.info.min_mtu) || p.cfg.MTU > most {
		return fmt.Errorf("the device takes an MTU from %d to %d, not %d", p.info.min_mtu, most, p.cfg.MTU)
	}
	p.mtu = min(p.cfg.MTU+tagRoom, most)
	return nil
}

// fits compares the configuration with the device's capabilities.
func (p *ethdev) fits(pool *Pool) error {
	if pairs := int(min(p.info.max_rx_queues, p.info.max_tx_queues)); pairs < p.workers {
		return fmt.Errorf("the device has %d pairs of queues for %d workers: configure fewer workers, or give the device more queues",
			pairs, p.workers)
	}
	if int(p.info.min_rx_bufsize) > pool.Room() {
		return fmt.Errorf("the device wants buffers of %d bytes, but they have %d: raise the port's mtu", p.info.min_rx_bufsize, pool.Room())
	}
	return nil
}

// configure sets the MTU, the queues and, if supported and needed, symmetric RSS.
func (p *ethdev) configure() (Spread, error) {
	var conf C.struct_rte_eth_conf
	conf.rxmode.mtu = C.uint32_t(p.mtu)
	spread := OneWorker
	if p.workers > 1 {
		spread = NoSpread
	}
	wanted := C.uint64_t(C.RTE_ETH_RSS_IP|C.RTE_ETH_RSS_UDP) & p.info.flow_type_rss_offloads
	if p.workers > 1 && wanted != 0 {
		key := symmetricKey(int(p.info.hash_key_size))
		c := C.CBytes(key)
		defer C.free(c)
		conf.rxmode.mq_mode = C.RTE_ETH_MQ_RX_RSS
		conf.rx_adv_conf.rss_conf.rss_key = (*C.uint8_t)(c)
		conf.rx_adv_conf.rss_conf.rss_key_len = C.uint8_t(len(key))
		conf.rx_adv_conf.rss_conf.rss_hf = wanted
		spread = SymmetricRSS
	}
	if ret := C.rte_eth_dev_configure(p.id, C.uint16_t(p.workers), C.uint16_t(p.workers), &conf); ret != 0 {
		return "", fmt.Errorf("configuring %d pairs of queues, MTU %d: %w%s", p.workers, p.mtu, unix.Errno(-ret), firstLog())
	}
	return spread, nil
}

// symmetricKey is a Toeplitz key that repeats every 16 bits, so that exchanging source and destination doesn't change the hash
// (Woo and Park, "Scalable TCP session monitoring with symmetric receive-side scaling", 2012).
func symmetricKey(size int) []byte {
	if size == 0 {
		size = 40 // the size for a device that doesn't report it
	}
	key := make([]byte, size)
	for i := range key {
		key[i] = [2]byte{0x6d, 0x5a}[i%2]
	}
	return key
}

func (p *ethdev) queues(pool *Pool) error {
	rx, tx := C.uint16_t(rxDescriptors), C.uint16_t(txDescriptors)
	if ret := C.rte_eth_dev_adjust_nb_rx_tx_desc(p.id, &rx, &tx); ret != 0 {
		return fmt.Errorf("choosing the number of descriptors: %w%s", unix.Errno(-ret), firstLog())
	}
	socket := C.uint(p.numa())
	for q := range C.uint16_t(p.workers) {
		if ret := C.rte_eth_rx_queue_setup(p.id, q, rx, socket, &p.info.default_rxconf, pool.pool); ret != 0 {
			return fmt.Errorf("rx queue %d of %d descriptors, buffers of %d bytes: %w%s", q, rx, pool.Room(), unix.Errno(-ret), firstLog())
		}
		if ret := C.rte_eth_tx_queue_setup(p.id, q, tx, socket, &p.info.default_txconf); ret != 0 {
			return fmt.Errorf("tx queue %d of %d descriptors: %w%s", q, tx, unix.Errno(-ret), firstLog())
		}
	}
	return nil
}

// scatters refuses a device that would put a frame of the full MTU into several buffers: egress is not configured to send such frames. Some
// drivers enable scattered receiving although every frame fits; that does no harm.
func (p *ethdev) scatters(pool *Pool) error {
	if p.known.usable(pool.Room()) >= p.mtu+14+tagRoom+4 {
		return nil
	}
	for q := range C.uint16_t(p.workers) {
		var queue C.struct_rte_eth_rxq_info
		if C.rte_eth_rx_queue_info_get(p.id, q, &queue) == 0 && queue.scattered_rx != 0 {
			return fmt.Errorf("the device would receive frames of MTU %d in several buffers of %d bytes, which the gateway doesn't forward: "+
				"lower the port's mtu, and report the driver (%s)", p.cfg.MTU, pool.Room(), p.driverName())
		}
	}
	return nil
}

// receiveAll makes the port receive frames for any address: a bump in the wire has no own address. Devices without filters don't support
// these switches.
func (p *ethdev) receiveAll() error {
	if C.rte_eth_promiscuous_get(p.id) != 1 {
		switch ret := C.rte_eth_promiscuous_enable(p.id); {
		case ret == 0:
			p.promisc = true
		case unix.Errno(-ret) != unix.ENOTSUP:
			return fmt.Errorf("switching promiscuous mode on: %w%s%s", unix.Errno(-ret), capabilities(unix.Errno(-ret)), firstLog())
		}
	}
	if ret := C.rte_eth_allmulticast_enable(p.id); ret != 0 && unix.Errno(-ret) != unix.ENOTSUP {
		return fmt.Errorf("receiving all multicast frames: %w%s", unix.Errno(-ret), firstLog())
	}
	return nil
}

func (p *ethdev) queue(worker int, q *C.struct_cnp_queue) {
	q.longest = C.uint32_t(p.longest)
	if p.known.copies {
		q.copied = 1
	}
	q.port, q.queue = p.id, C.uint16_t(worker)
}

func (p *ethdev) linkUp() (bool, error) {
	ret := C.cnp_link(p.id)
	if ret < 0 {
		return false, unix.Errno(-ret)
	}
	return ret == 1, nil
}

func (p *ethdev) speed() uint64 { return uint64(C.cnp_link_speed(p.id)) * 1e6 }

func (p *ethdev) setLink(up bool) error {
	ret := C.int(0)
	if up {
		ret = C.rte_eth_dev_set_link_up(p.id)
	} else {
		ret = C.rte_eth_dev_set_link_down(p.id)
	}
	switch err := unix.Errno(-ret); {
	case ret == 0:
		return nil
	case err == unix.ENOTSUP:
		return errors.ErrUnsupported
	default:
		return err
	}
}

// findOversized finds the device's own counters of oversized frames: no basic counter has them on every device.
func (p *ethdev) findOversized() {
	n := C.rte_eth_xstats_get_names(p.id, nil, 0)
	if n <= 0 {
		return
	}
	names := callocSlice[C.struct_rte_eth_xstat_name](int(n))
	defer freeSlice(names)
	if C.rte_eth_xstats_get_names(p.id, unsafe.SliceData(names), C.uint(n)) != n {
		return
	}
	for i := range names {
		name := C.GoString(&names[i].name[0])
		if strings.HasPrefix(name, "rx_") && (strings.Contains(name, "oversize") || name == "rx_jumbo_errors") {
			p.oversized = append(p.oversized, C.uint64_t(i))
		}
	}
}

func (p *ethdev) stats() (Stats, error) {
	var s C.struct_rte_eth_stats
	if ret := C.rte_eth_stats_get(p.id, &s); ret != 0 {
		return Stats{}, unix.Errno(-ret)
	}
	out := Stats{
		RxPackets: uint64(s.ipackets), RxBytes: uint64(s.ibytes), TxPackets: uint64(s.opackets), TxBytes: uint64(s.obytes),
		RxMissed: uint64(s.imissed), RxErrors: uint64(s.ierrors), TxErrors: uint64(s.oerrors), RxNoBuffer: uint64(s.rx_nombuf),
	}
	if p.known.retried {
		out.TxErrors = 0
	}
	for _, id := range p.oversized {
		var value C.uint64_t
		if C.rte_eth_xstats_get_by_id(p.id, &id, &value, 1) == 1 {
			out.RxOversized += uint64(value)
		}
	}
	return out, nil
}

// stop discards the frames that wait in the device and stops it.
func (p *ethdev) stop() error {
	if !p.started {
		return nil
	}
	p.started = false
	if p.promisc {
		C.rte_eth_promiscuous_disable(p.id)
	}
	// Devices that pass on buffers (net_ring) would keep them; a device that generates frames (net_null) would never run out.
	for q := range C.uint16_t(p.workers) {
		p.discarded += uint64(C.cnp_discard(p.id, q, maxDiscarded))
	}
	if ret := C.rte_eth_dev_stop(p.id); ret != 0 {
		return fmt.Errorf("stopping the device: %w", unix.Errno(-ret))
	}
	return nil
}

// close releases the device, so that it can be opened again under the same name, here or by another gateway.
func (p *ethdev) close() error {
	var errs []error
	if !p.lent {
		errs = append(errs, p.remove())
	}
	return errors.Join(append(errs, releaseAll(p.locks))...)
}

func (p *ethdev) remove() error {
	var errs []error
	if ret := C.rte_eth_dev_close(p.id); ret != 0 {
		errs = append(errs, fmt.Errorf("closing the device: %w", unix.Errno(-ret)))
	}
	if p.handle != nil {
		if ret := C.rte_dev_remove(p.handle); ret != 0 {
			errs = append(errs, fmt.Errorf("removing the device: %w", unix.Errno(-ret)))
		}
	}
	return errors.Join(errs...)
}

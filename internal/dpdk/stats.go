//go:build !nodpdk

package dpdk

/*
#include "eal.h"
*/
import "C"

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Stats is what the device counted since it was opened (struct rte_eth_stats). Virtual devices count what they took, not what
// arrived at the other end.
type Stats struct {
	RxPackets, RxBytes uint64 // ipackets, ibytes
	TxPackets, TxBytes uint64 // opackets, obytes
	RxMissed           uint64 // imissed: no free rx descriptor
	RxErrors, TxErrors uint64 // ierrors, oerrors
	RxNoMbuf           uint64 // rx_nombuf: the pool was empty
}

// Stats asks the device.
func (p *Port) Stats() (Stats, error) {
	var s C.struct_rte_eth_stats
	err := p.eal.do(func() error {
		if ret := C.rte_eth_stats_get(p.id, &s); ret != 0 {
			return portError(p.cfg, fmt.Errorf("reading statistics: %w", unix.Errno(-ret)))
		}
		return nil
	})
	return Stats{
		RxPackets: uint64(s.ipackets), RxBytes: uint64(s.ibytes), TxPackets: uint64(s.opackets), TxBytes: uint64(s.obytes),
		RxMissed: uint64(s.imissed), RxErrors: uint64(s.ierrors), TxErrors: uint64(s.oerrors), RxNoMbuf: uint64(s.rx_nombuf),
	}, err
}

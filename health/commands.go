package health

import (
	"fmt"
	"strings"
)

// placeholders are what only the person knows who types a command.
var placeholders = []struct{ name, what string }{
	{"$IF", "the RDMA interface"}, {"$DEVICE", "the PCI address of the NIC"}, {"$PRIO", "the priority of the traffic, often 3"}, {"$INDEX", "the number that show_gids prints"},
}

// commands are what a person types to change what a verdict is about, or to look at it more closely, and a comment that says what the placeholders are.
func (v *Verdict) commands(gateway bool) []string {
	all := v.typed(gateway)
	var open []string
	for _, p := range placeholders {
		if strings.Contains(strings.Join(all, "\n"), p.name) {
			open = append(open, p.name+" is "+p.what)
		}
	}
	if len(open) > 0 {
		all = append(all, "# "+strings.Join(open, "; "))
	}
	return all
}

// typed are the commands, each with a comment that says where.
func (v *Verdict) typed(gateway bool) []string {
	if v.Commands != nil { // who says it knows better
		return v.Commands
	}
	subject := v.Subject
	if len(v.Pairs) > 0 {
		subject = v.Pairs[0].Subject
	}
	hosts, _, _ := strings.Cut(subject, ", ")
	from, to, _ := strings.Cut(hosts, " -> ")
	const (
		drops = "ethtool -S $IF | grep -iE 'discard|drop|crc|out_of_buffer'   # at %s; then the same counters of the switch ports between here and there"
		lossy = "mlnx_qos -i $IF   # at %s: is PFC on for the priority of the traffic?"
		whole = "tcpdump -i $IF -s 192 -B 65536 -w again.pcap udp port 4791 or icmp or icmp6   # at %s, before the job begins"
	)
	switch {
	case v.Name == GatewayDrops, v.Name == PartialPath:
		return []string{"cnpgate show ports   # at this gateway: what each port drops, and how full its queue gets"}
	case gateway && (v.Name == Asymmetric || v.Name == Unexplained):
		return []string{fmt.Sprintf("cnpgate capture --flow %s,%s --data -w again.pcapng   # at this gateway", from, to)}
	}
	switch v.Name {
	case ShortTimeOut:
		return []string{
			fmt.Sprintf("export NCCL_IB_TIMEOUT=%d   # NCCL: in the environment of the job", v.timeout),
			fmt.Sprintf("export UCX_RC_TIMEOUT=%dms   # UCX: in the environment of the job", int64(4096)<<v.timeout/ms),
			fmt.Sprintf("ib_write_bw -u %d ...   # perftest", v.timeout),
			fmt.Sprintf(`mlxreg -d $DEVICE --reg_name ROCE_ACCEL --set "roce_adp_retrans_en=0x0"   # at %s, ConnectX: adaptive retransmission off`, from),
		}
	case IgnoresCNP:
		return []string{
			fmt.Sprintf("echo 1 > /sys/class/net/$IF/ecn/roce_rp/enable/$PRIO   # at %s", from),
			fmt.Sprintf("grep . /sys/class/infiniband/*/ports/1/hw_counters/rp_cnp_*   # at %s: does it count CNPs?", from),
		}
	case CENoCNP:
		return []string{
			fmt.Sprintf("echo 1 > /sys/class/net/$IF/ecn/roce_np/enable/$PRIO   # at %s", from),
			fmt.Sprintf("grep . /sys/class/infiniband/*/ports/1/hw_counters/np_*   # at %s: does it count CE and CNPs?", from),
		}
	case LossUpstream, LossDownstream:
		return []string{fmt.Sprintf(drops, v.lossy), fmt.Sprintf(lossy, v.lossy)}
	case AckLoss:
		return []string{fmt.Sprintf(drops, from), fmt.Sprintf(lossy, from)}
	case BlackHole:
		return []string{
			fmt.Sprintf("tracepath -n %s   # at %s: the MTU of each hop", to, from),
			fmt.Sprintf("ip link set dev $IF mtu 4200   # at %s and %s, and the same at every switch port between them", from, to),
		}
	case MTUDiffers:
		return []string{fmt.Sprintf("ibv_devinfo | grep active_mtu   # at %s and %s", from, to)}
	case NoAnswer:
		return []string{
			fmt.Sprintf("ping -c 3 %s   # at %s", to, from),
			fmt.Sprintf("rdma resource show qp   # at %s: is the QP still there, and in state RTS?", to),
		}
	case PFCPauses, PFCStorm:
		return []string{"ethtool -S $IF | grep -i pause   # at every host: which one sends pauses?"}
	case SlowReceiver:
		return []string{
			fmt.Sprintf("ethtool -S $IF | grep -iE 'pause|discard|out_of_buffer'   # at %s", from),
			fmt.Sprintf("lspci -vv | grep -E 'Ethernet|LnkSta:'   # at %s: the PCIe width and speed of the NIC", from),
		}
	case WrongICRC:
		return []string{fmt.Sprintf("ethtool -S $IF | grep -iE 'crc|symbol|fcs'   # at %s", to)}
	case RoCEv1:
		return []string{
			"show_gids   # choose one of version v2 with the IP address of the host",
			"export NCCL_IB_GID_INDEX=$INDEX UCX_IB_GID_INDEX=$INDEX   # in the environment of the job",
		}
	case Asymmetric, Unexplained, Incomplete:
		return []string{fmt.Sprintf(whole, from)}
	}
	return nil
}

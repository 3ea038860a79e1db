package health

// kind is what the verdicts of a name have in common.
type kind struct {
	title, meaning string                                     // in plain words
	rule           func(c *Connection, i int) (Verdict, bool) // whether it holds of one end's requests; nil: it is found elsewhere
	explains       bool                                       // it says why packets were sent again
	anyMTU         bool                                       // its rule also holds where the ends' path MTUs differ, so that which PSNs a READ takes isn't known
	commands       []string                                   // what to type; see Verdict.commands
	inGateway      string                                     // in place of them in a gateway; "": the same
}

// Names are all verdicts, in the order of their declaration.
var Names []string

var kinds = map[string]kind{}

// verdict declares a verdict: its name, in plain words its title and what it means, its rule, and what to type.
func verdict(name, title, meaning string, k kind, commands ...string) string {
	Names = append(Names, name)
	k.title, k.meaning, k.commands = title, meaning, commands
	kinds[name] = k
	return name
}

// The verdicts. Rules apply in this order.
var (
	ShortTimeOut = verdict("timeout-shorter-than-rtt", "The sender gives up waiting too early",
		"The answers do come, but later than the timeout of the QP. So it sends again what had already arrived.",
		kind{rule: shortTimeOut, explains: true},
		"export NCCL_IB_TIMEOUT={timeout}   # NCCL: in the environment of the job",
		"export UCX_RC_TIMEOUT={timeout ms}ms   # UCX: in the environment of the job",
		"ib_write_bw -u {timeout} ...   # perftest",
		`mlxreg -d $DEVICE --reg_name ROCE_ACCEL --set "roce_adp_retrans_en=0x0"   # at {from}, ConnectX: adaptive retransmission off`)
	BlackHole = verdict("mtu-black-hole", "Large packets never arrive",
		"Small packets pass, and large ones vanish: a link on the path has a smaller MTU.",
		kind{rule: blackHole, explains: true},
		"tracepath -n {to}   # at {from}: the MTU of each hop",
		"ip link set dev $IF mtu 4200   # at {from} and {to}, and the same at every switch port between them")
	NoAnswer = verdict("no-answer", "The peer doesn't answer",
		"The same packet is sent again and again until the sender gives up.",
		kind{rule: noAnswer, explains: true},
		"ping -c 3 {to}   # at {from}",
		"rdma resource show qp   # at {to}: is the QP still there, and in state RTS?")
	Asymmetric = verdict("asymmetric-path", "Only one direction can be seen",
		"The answers take another way, so what becomes of the packets isn't known here.",
		kind{rule: asymmetric, inGateway: followed}, whole)
	Refused = verdict("request-refused", "The receiver refuses a request",
		"It answers with an error (NAK) that ends the connection, or rejects the connection.",
		kind{rule: refused, explains: true, anyMTU: true})
	NotReady = verdict("receiver-not-ready", "The receiver has no buffer ready",
		"It refuses messages (RNR NAK) until the application posts a receive, and the sender has to wait.",
		kind{rule: notReady, explains: true})
	LossUpstream = verdict("loss-upstream", "Packets are lost before this point",
		"They were sent, but never came to where the capture was made, and the sender has to send them again.",
		kind{rule: lossUpstream, explains: true}, drops("{lossy}"), lossless("{lossy}"))
	LossDownstream = verdict("loss-downstream", "Packets are lost behind this point",
		"They passed where the capture was made, but the receiver asks for them again or never answers.",
		kind{rule: lossDownstream, explains: true}, drops("{lossy}"), lossless("{lossy}"))
	AckLoss = verdict("ack-loss", "Answers are lost on the way back",
		"The ACK passes this point, but the sender waits for it in vain and sends the data again.",
		kind{rule: ackLoss, explains: true}, drops("{from}"), lossless("{from}"))
	Reordering = verdict("reordering", "Packets overtake each other",
		"The receiver takes a packet that is late for one that is lost, and asks for it again.",
		kind{rule: reordering, explains: true})
	Duplication = verdict("duplicate-packets", "Packets arrive twice",
		"The sender sent them once. The network or the capture doubled them.",
		kind{rule: duplication})
	WindowLimit = verdict("window-limits-throughput", "Too little is sent at once for this distance",
		"The sender waits for answers most of the time, although the path could carry more.",
		kind{rule: windowLimit})
	MTUDiffers = verdict("mtu-differs", "The two ends have different path MTUs",
		"One end sends packets of another size than the other expects, so READs fail although nothing is lost.",
		kind{rule: mtuDiffers, explains: true, anyMTU: true},
		"ibv_devinfo | grep active_mtu   # at {from} and {to}")
	Incomplete = verdict("capture-incomplete", "The capture itself has missed packets",
		"They were acknowledged, so they did arrive: they were lost on the way to the capture, not in the network.",
		kind{rule: incomplete}, whole)
	GatewayDrops = verdict("gateway-drops", "This gateway drops the packets itself",
		"They came faster than the port may send, and its queue is full: nothing is wrong with the path behind it.",
		kind{rule: gatewayDrops, explains: true}, ownPorts)
	IgnoresCNP = verdict("sender-ignores-cnps", "A sender doesn't slow down when it is asked to",
		"Congestion notifications (CNPs) reach it, and it goes on at the same rate.",
		kind{rule: ignoresCNP, anyMTU: true},
		"echo 1 > /sys/class/net/$IF/ecn/roce_rp/enable/$PRIO   # at {from}",
		"grep . /sys/class/infiniband/*/ports/1/hw_counters/rp_cnp_*   # at {from}: does it count CNPs?")
	CENoCNP = verdict("ce-without-cnp", "A receiver doesn't report congestion",
		"Packets reach it with a congestion mark (CE), and it sends no notification (CNP) back to the sender.",
		kind{rule: ceWithoutCNP, anyMTU: true},
		"echo 1 > /sys/class/net/$IF/ecn/roce_np/enable/$PRIO   # at {from}",
		"grep . /sys/class/infiniband/*/ports/1/hw_counters/np_*   # at {from}: does it count CE and CNPs?")
	Unexplained = verdict("retransmission-unexplained", "Packets are sent again, and this capture doesn't show why",
		"One of: loss on either side, a lost ACK, a timeout that is too short.",
		kind{inGateway: followed}, whole)
	SlowReceiver = verdict("slow-receiver", "One receiver answers much later than its neighbours",
		"Others of its network answer at once: the wait is for this host, not for the network.",
		kind{},
		"ethtool -S $IF | grep -iE 'pause|discard|out_of_buffer'   # at {from}",
		"lspci -vv | grep -E 'Ethernet|LnkSta:'   # at {from}: the PCIe width and speed of the NIC")
	PFCPauses = verdict("pfc-pauses", "A receiver or switch keeps pausing the network",
		"It can't take what is sent to it, and stops everything of that priority.",
		kind{}, whoPauses)
	PFCStorm = verdict("pfc-storm", "A device holds the network with pauses",
		"A pause this long spreads from switch to switch and stops hosts that have nothing to do with it.",
		kind{}, whoPauses)
	WrongICRC = verdict("wrong-icrc", "Packets are damaged on the way",
		"The checksum of whole packets is wrong. Their receiver drops them without a word.",
		kind{},
		"ethtool -S $IF | grep -iE 'crc|symbol|fcs'   # at {to}")
	Unreachable = verdict("unreachable", "A router or host discards the packets, and says why",
		"It sends ICMP errors about them: the evidence has its reason.",
		kind{})
	RoCEv1 = verdict("rocev1", "This is RoCE v1, which can't be routed",
		"It never leaves its network segment. Jobs across racks need RoCE v2.",
		kind{},
		"show_gids   # choose one of version v2 with the IP address of the host",
		"export NCCL_IB_GID_INDEX=$INDEX UCX_IB_GID_INDEX=$INDEX   # in the environment of the job")
	// PartialPath is Incomplete in a gateway.
	PartialPath = verdict("partial-path", "Only a part of the packets passes this gateway",
		"The others were acknowledged, so they did arrive: they took another path.",
		kind{}, ownPorts)
)

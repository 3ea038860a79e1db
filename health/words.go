package health

import "fmt"

// Names are all verdicts, in the order of their declaration.
var Names []string

// words are a title and the meaning of each verdict.
var words = map[string][2]string{}

// verdict declares a verdict: its name, and in plain words its title and what it means.
func verdict(name, title, meaning string) string {
	Names = append(Names, name)
	words[name] = [2]string{title, meaning}
	return name
}

// The verdicts.
var (
	ShortTimeOut = verdict("timeout-shorter-than-rtt", "The sender gives up waiting too early",
		"The answers do come, but later than the timeout of the QP. So it sends again what had already arrived.")
	IgnoresCNP = verdict("sender-ignores-cnps", "A sender doesn't slow down when it is asked to",
		"Congestion notifications (CNPs) reach it, and it goes on at the same rate.")
	LossUpstream = verdict("loss-upstream", "Packets are lost before this point",
		"They were sent, but never came to where the capture was made, and the sender has to send them again.")
	LossDownstream = verdict("loss-downstream", "Packets are lost behind this point",
		"They passed where the capture was made, but the receiver asks for them again or never answers.")
	AckLoss = verdict("ack-loss", "Answers are lost on the way back",
		"The ACK passes this point, but the sender waits for it in vain and sends the data again.")
	Reordering = verdict("reordering", "Packets overtake each other",
		"The receiver takes a packet that is late for one that is lost, and asks for it again.")
	Duplication = verdict("duplicate-packets", "Packets arrive twice",
		"The sender sent them once. The network or the capture doubled them.")
	NotReady = verdict("receiver-not-ready", "The receiver has no buffer ready",
		"It refuses messages (RNR NAK) until the application posts a receive, and the sender has to wait.")
	SlowReceiver = verdict("slow-receiver", "One receiver answers much later than its neighbours",
		"Others of its network answer at once: the wait is for this host, not for the network.")
	BlackHole = verdict("mtu-black-hole", "Large packets never arrive",
		"Small packets pass, and large ones vanish: a link on the path has a smaller MTU.")
	WindowLimit = verdict("window-limits-throughput", "Too little is sent at once for this distance",
		"The sender waits for answers most of the time, although the path could carry more.")
	MTUDiffers = verdict("mtu-differs", "The two ends have different path MTUs",
		"One end sends packets of another size than the other expects, so READs fail although nothing is lost.")
	Asymmetric = verdict("asymmetric-path", "Only one direction can be seen",
		"The answers take another way, so what becomes of the packets isn't known here.")
	NoAnswer = verdict("no-answer", "The peer doesn't answer",
		"The same packet is sent again and again until the sender gives up.")
	Refused = verdict("request-refused", "The receiver refuses a request",
		"It answers with an error (NAK) that ends the connection, or rejects the connection.")
	PFCPauses = verdict("pfc-pauses", "A receiver or switch keeps pausing the network",
		"It can't take what is sent to it, and stops everything of that priority.")
	PFCStorm = verdict("pfc-storm", "A device holds the network with pauses",
		"A pause this long spreads from switch to switch and stops hosts that have nothing to do with it.")
	CENoCNP = verdict("ce-without-cnp", "A receiver doesn't report congestion",
		"Packets reach it with a congestion mark (CE), and it sends no notification (CNP) back to the sender.")
	WrongICRC = verdict("wrong-icrc", "Packets are damaged on the way",
		"The checksum of whole packets is wrong. Their receiver drops them without a word.")
	Unreachable = verdict("unreachable", "A router or host discards the packets, and says why",
		"It sends ICMP errors about them: the evidence has its reason.")
	RoCEv1 = verdict("rocev1", "This is RoCE v1, which can't be routed",
		"It never leaves its network segment. Jobs across racks need RoCE v2.")
	Unexplained = verdict("retransmission-unexplained", "Packets are sent again, and this capture doesn't show why",
		"One of: loss on either side, a lost ACK, a timeout that is too short.")
	Incomplete = verdict("capture-incomplete", "The capture itself has missed packets",
		"They were acknowledged, so they did arrive: they were lost on the way to the capture, not in the network.")
	GatewayDrops = verdict("gateway-drops", "This gateway drops the packets itself",
		"They came faster than the port may send, and its queue is full: nothing is wrong with the path behind it.")
	// PartialPath is Incomplete in a gateway.
	PartialPath = verdict("partial-path", "Only a part of the packets passes this gateway",
		"The others were acknowledged, so they did arrive: they took another path.")
)

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func percent(part, of uint64) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(max(of, 1)))
}

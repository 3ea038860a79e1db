// What the verdicts (health/verdict.go) are in plain words: a title, and what it means.
export const words = {
  "timeout-shorter-than-rtt": ["The sender gives up waiting too early", "The answers do come, but later than the timeout of the QP. So it sends again what had already arrived."],
  "sender-ignores-cnps": ["A sender doesn't slow down when it is asked to", "Congestion notifications (CNPs) reach it, and it goes on at the same rate."],
  "ce-without-cnp": ["A receiver doesn't report congestion", "Packets reach it with a congestion mark (CE), and it sends no notification (CNP) back to the sender."],
  "loss-upstream": ["Packets are lost before this point", "They were sent, but never came to where the capture was made, and the sender has to send them again."],
  "loss-downstream": ["Packets are lost behind this point", "They passed where the capture was made, but the receiver asks for them again or never answers."],
  "gateway-drops": ["This gateway drops the packets itself", "They came faster than the port may send, and its queue is full: nothing is wrong with the path behind it."],
  "ack-loss": ["Answers are lost on the way back", "The ACK passes this point, but the sender waits for it in vain and sends the data again."],
  "reordering": ["Packets overtake each other", "The receiver takes a packet that is late for one that is lost, and asks for it again."],
  "duplicate-packets": ["Packets arrive twice", "The sender sent them once. The network or the capture doubled them."],
  "receiver-not-ready": ["The receiver has no buffer ready", "It refuses messages (RNR NAK) until the application posts a receive, and the sender has to wait."],
  "slow-receiver": ["One receiver answers much later than its neighbours", "Others of its network answer at once: the wait is for this host, not for the network."],
  "mtu-black-hole": ["Large packets never arrive", "Small packets pass, and large ones vanish: a link on the path has a smaller MTU."],
  "window-limits-throughput": ["Too little is sent at once for this distance", "The sender waits for answers most of the time, although the path could carry more."],
  "asymmetric-path": ["Only one direction can be seen", "The answers take another way, so what becomes of the packets isn't known here."],
  "no-answer": ["The peer doesn't answer", "The same packet is sent again and again until the sender gives up."],
  "request-refused": ["The receiver refuses a request", "It answers with an error (NAK) that ends the connection, or rejects the connection."],
  "pfc-pauses": ["A receiver or switch keeps pausing the network", "It can't take what is sent to it, and stops everything of that priority."],
  "pfc-storm": ["A device holds the network with pauses", "A pause this long spreads from switch to switch and stops hosts that have nothing to do with it."],
  "wrong-icrc": ["Packets are damaged on the way", "The checksum of whole packets is wrong. Their receiver drops them without a word."],
  "unreachable": ["A router or host discards the packets, and says why", "It sends ICMP errors about them: the evidence has its reason."],
  "rocev1": ["This is RoCE v1, which can't be routed", "It never leaves its network segment. Jobs across racks need RoCE v2."],
  "partial-path": ["Only a part of the packets passes this gateway", "The others were acknowledged, so they did arrive: they took another path."],
  "retransmission-unexplained": ["Packets are sent again, and this capture doesn't show why", "One of: loss on either side, a lost ACK, a timeout that is too short."],
  "capture-incomplete": ["The capture itself has missed packets", "They were acknowledged, so they did arrive: they were lost on the way to the capture, not in the network."],
};

export const titleOf = (verdict) => words[verdict]?.[0] ?? verdict;
export const meaningOf = (verdict) => words[verdict]?.[1] ?? "";

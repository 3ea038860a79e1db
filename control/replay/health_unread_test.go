package replay_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// unread says how a capture of testdata/unread is to be answered.
type unread struct {
	name     string
	verdicts []string // all of them
	lost     uint64   // behind here
	naks     uint64   // packets sent again by NAK
	reasons  []string // with RDMA, of frames that aren't examined
	detail   string   // in that of the first of these
	says     string   // in the evidence of the first verdict, or else in the conclusion
}

// TestUnread: captures of mirrors and overlays, cut frames, other kinds of RDMA, pauses and wrong ICRCs are read, or it is said why not.
func TestUnread(t *testing.T) {
	lossy := func(name string) unread {
		return unread{name: name, verdicts: []string{health.LossDownstream}, lost: 2, naks: 88}
	}
	all := []unread{
		{name: "snap6_64", reasons: []string{"headers-cut-off"}, detail: "64 of", says: "630 of 630"},
		{name: "snap6_74", verdicts: []string{health.Unexplained}, reasons: []string{"headers-cut-off"}, says: "cut off the AETH"},
		{name: "vxlan_vlan_v6_snap128", verdicts: []string{health.Unexplained}, reasons: []string{"headers-cut-off"}},
		{name: "read_vlan_snap64"},
		{name: "rocev1_no_answer", verdicts: []string{health.RoCEv1}, reasons: []string{"rocev1"}, detail: "0x8915", says: "8 frames"},
		{name: "dct", reasons: []string{"opcode-not-followed", "opcode-not-followed", "opcode-not-followed"}, detail: "0xd1", says: "600 of 600"},
		{name: "dct_and_rc", reasons: []string{"opcode-not-followed", "opcode-not-followed", "opcode-not-followed"}, detail: "0xd1", says: "600"},
		{name: "iwarp", reasons: []string{"other-rdma"}, detail: "iWARP", says: "122 of 122"},
		{name: "ud", says: "2 of 2 connections are UD or UC"},
		{name: "pfc_one", says: "Nothing is wrong."},
		{name: "pfc_stall", verdicts: []string{health.PFCStorm}, says: "priority 3"},
		{name: "pfc_storm_only", verdicts: []string{health.PFCStorm}, says: "priority 4"},
		{name: "gro_merged", reasons: []string{"packets-merged"}, detail: "more payload", says: "120 of 160"},
		{name: "icrc_bad_all", verdicts: []string{health.WrongICRC}, says: "64 of 64"},
		{name: "icrc_bad_some", naks: 104, verdicts: []string{health.WrongICRC}, says: "corrupted before here"},
	}
	for _, name := range []string{
		"erspan1", "erspan2", "erspan2_vlan", "erspan3", "erspan3_opt",
		"ip_options", "mpls_pw", "qinq9100", "snap64", "snapq_64", "teb", "vntag", "v6_ah", "v6_frag_atomic", "v6_hbh", "v6_rt", "vxlan6",
	} {
		all = append(all, lossy(name))
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { c.check(t, healthOf(t, "testdata/unread/"+c.name+".pcap.gz")) })
	}
}

func (c *unread) check(t *testing.T, r *health.Report) {
	var names, reasons []string
	text := r.Conclusion
	for i, v := range r.Verdicts {
		names = append(names, v.Name)
		if i == 0 {
			text = v.Evidence
		}
	}
	if !slices.Equal(names, c.verdicts) {
		t.Errorf("verdicts %+v, want %v", r.Verdicts, c.verdicts)
	}
	sum := r.Frames.Examined
	for _, u := range r.Frames.Unread {
		sum += u.Frames
		if u.RDMA {
			if len(reasons) == 0 && (!strings.Contains(u.Detail, c.detail) || u.First == 0 || u.Advice == "") {
				t.Errorf("unread: %+v, want %q", u, c.detail)
			}
			reasons = append(reasons, u.Reason)
		}
	}
	if !slices.Equal(reasons, c.reasons) {
		t.Errorf("not examined: %+v, want %v", r.Frames.Unread, c.reasons)
	}
	if sum != r.Frames.Total {
		t.Errorf("%d of %d frames are accounted for: %+v", sum, r.Frames.Total, r.Frames)
	}
	if !strings.Contains(text, c.says) {
		t.Errorf("it says %q, want %q", text, c.says)
	}
	if s := &r.Summary; s.LostDownstream != c.lost || s.Causes["nak-sequence-error"].Packets != c.naks {
		t.Errorf("lost behind %d, sent again %v; want %d, %d by NAK", s.LostDownstream, s.Causes, c.lost, c.naks)
	}
	if r.Conclusion == "Nothing is wrong." && len(c.verdicts)+len(c.reasons) > 0 {
		t.Errorf("conclusion %q", r.Conclusion)
	}
}

// TestWrongICRCInDamagedFile: a byte that changed in a file is not said to be corruption in the network, where the file shows that it is damaged.
func TestWrongICRCInDamagedFile(t *testing.T) {
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.NoCompression) // so that one byte changes one byte
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(readFile(t, "../../testdata/captures/rc_write_v4.pcap")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := z.Bytes()
	b[len(b)/2] ^= 1
	c, err := replay.Open(save(t, b), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := diagnosed(c, replay.HealthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Verdicts) != 1 || r.Verdicts[0].Name != health.WrongICRC || !strings.Contains(r.Verdicts[0].Evidence, "the file, which is damaged") {
		t.Errorf("%+v; want that the file is damaged", r.Verdicts)
	}
}

// TestUnwrittenICRCs: a capture at a host before its NIC writes the ICRCs, whichever end that is, shows no corruption.
func TestUnwrittenICRCs(t *testing.T) {
	for _, name := range []string{"rc_write_v4", "rc_read_v4", "rc_send_v6"} {
		all := frames(t, readFile(t, "../../testdata/captures/"+name+".pcap"))
		for _, host := range []packet.Addr{all[0].parse().Src, all[0].parse().Dst} {
			path, write, end := pcap.Create(t, pcap.Whole)
			for _, f := range all {
				b := slices.Clone(f.octets)
				if p := f.parse(); p.Src == host && p.Kind == packet.RoCEv2 {
					copy(b[p.ICRC:], "\x12\x34\x56\x78")
				}
				write(f.at, b, f.length)
			}
			end()
			if r := healthOf(t, path); len(r.Verdicts) > 0 {
				t.Errorf("%s, at %v: %+v", name, host.Netip(), r.Verdicts)
			}
		}
	}
}

// TestDroppedFrames: the answer has the frames that were dropped while the capture was made, as its file counts them.
func TestDroppedFrames(t *testing.T) {
	for _, dropped := range []uint64{0, 7} {
		var file bytes.Buffer
		w, err := pcapgo.NewNgWriter(&file, layers.LinkTypeEthernet)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames(t, readFile(t, "../../testdata/captures/rc_write_v4.pcap")) {
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: timeOf(f.at), CaptureLength: len(f.octets), Length: f.length}, f.octets); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmp.Or(w.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{PacketsDropped: dropped}), w.Flush()); err != nil {
			t.Fatal(err)
		}
		r := healthOf(t, save(t, file.Bytes()))
		if wrong := len(r.Verdicts) == 1 && r.Verdicts[0].Name == health.Incomplete && strings.Contains(r.Verdicts[0].Evidence, "7 frames were dropped"); wrong != (dropped > 0) || len(r.Verdicts) > 1 {
			t.Errorf("%d dropped: %+v", dropped, r.Verdicts)
		}
	}
}

// TestAnotherAddress: a host that answers from another of its addresses is paired all the same, nothing is wrong with a requester that accepts that, and it is said.
func TestAnotherAddress(t *testing.T) {
	for _, name := range []string{"rc_write_v4", "rc_read_v4"} {
		all := frames(t, readFile(t, "../../testdata/captures/"+name+".pcap"))
		answers := all[0].parse().Dst
		for i := range all {
			if p := all[i].parse(); p.Src == answers && p.Opcode.Role() == packet.Response {
				all[i].octets[p.L3+15] += 100 // the last octet of the source
			}
		}
		r := healthOf(t, rewritten(t, all))
		if len(r.Verdicts) > 0 || len(r.Notes) == 0 || r.Notes[0].Name != health.NoteAddress || r.Summary.OneDirection > 0 || r.Summary.Retransmitted.Packets > 0 {
			t.Errorf("%s: verdicts %+v, notes %+v, summary %+v", name, r.Verdicts, r.Notes, r.Summary)
		}
	}
}

package api

import (
	"net/http"
	"net/netip"
	"reflect"
	"testing"

	"github.com/cnpgate/cnpgate/control/advertise"
)

// TestBGP: the client reads the state of BGP that the gateway has, also that there is none.
func TestBGP(t *testing.T) {
	g := newGate(t, 1)
	g.bgp = advertise.Status{Announced: []netip.Prefix{}, Peers: []advertise.Peer{}}
	g.want(t, http.MethodGet, BGPPath, "", 200, `{"running":false,"announced":[],"prefixes_learned":0,"peers":[]}`)
	g.want(t, http.MethodGet, BGPPath+"?peer=192.0.2.1", "", 400, "no parameter")
	g.bgp = advertise.Status{
		Running: true, AS: 65001, RouterID: "192.0.2.9", Announced: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, PrefixesLearned: 2,
		Peers: []advertise.Peer{{Address: "192.0.2.10", AS: 65002, State: "established", Uptime: 7, Announced: 1, Received: 3, Learned: 2, Ignored: map[string]int{"malformed": 1}}},
	}
	read, err := Get[advertise.Status](t.Context(), NewClient(g.path), BGPPath)
	if err != nil || !reflect.DeepEqual(*read, g.bgp) {
		t.Errorf("%+v, %v", read, err)
	}
}

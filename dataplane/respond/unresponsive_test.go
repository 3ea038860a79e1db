package respond

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestUnresponsiveBounded: of more senders than are kept, the ones noticed last stay, each once; scopes are apart, and one that reacts leaves.
func TestUnresponsiveBounded(t *testing.T) {
	var u unresponsiveSenders
	host := func(n int, scope packet.Scope) packet.Host {
		return packet.Host{Addr: packet.Addr{Lo: uint64(n)}, Scope: scope}
	}
	for n := range 2 * maxUnresponsive {
		for again := range 2 {
			if isNew, ok := u.note(host(n, 0), 1, int64(n)); isNew != (again == 0) || !ok {
				t.Fatalf("sender %d: new %v, noted %v", n, isNew, ok)
			}
		}
	}
	all, found := u.list()
	if len(all) != maxUnresponsive || found != 2*maxUnresponsive {
		t.Fatalf("%d are kept, %d were found", len(all), found)
	}
	for _, s := range all {
		if s.Last < maxUnresponsive || s.Host.Lo != uint64(s.Last) {
			t.Errorf("%+v is kept", s)
		}
	}
	if isNew, _ := u.note(host(2*maxUnresponsive-1, 7), 1, 1e9); !isNew {
		t.Error("a sender in another scope counts as the same")
	}
	u.remove(host(2*maxUnresponsive-1, 0))
	if all, _ = u.list(); len(all) != maxUnresponsive-1 {
		t.Errorf("%d are kept after one has reacted", len(all))
	}
	u.lock.Lock()
	if _, ok := u.note(host(1, 1), 1, 1); ok {
		t.Error("noted while another goroutine reads")
	}
	u.lock.Unlock()
}

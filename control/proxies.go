package control

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cnpgate/cnpgate/proxy"
)

// proxies are the proxies of the configuration, and those that protocols have learned. The mutex is locked before the gateway's adapting.
type proxies struct {
	sync.Mutex
	static  *proxy.Senders // nil: proxies are not enabled, and learned ones are kept for later
	learned map[string]*proxy.Senders
}

// with returns the proxies of a configuration and the learned ones together, nil if static is nil. Where prefixes are equal, those of the
// configuration count first, then those of the origin whose name comes first. The caller holds the mutex.
func (p *proxies) with(static *proxy.Senders) (*proxy.Senders, error) {
	if static == nil {
		return nil, nil
	}
	inOrder := []*proxy.Senders{static}
	for _, origin := range slices.Sorted(maps.Keys(p.learned)) {
		inOrder = append(inOrder, p.learned[origin])
	}
	return proxy.Merge(inOrder...)
}

// SetLearned replaces the senders that a protocol has learned: origin is its name, such as "bgp", which the entries get as their Origin. No
// senders withdraw all. Each worker uses the new map from its next burst on. While proxies are not enabled, the senders are only kept. After
// an error, which says which entry is wrong or that there are too many, the senders before stay. Any goroutine may call it; a caller with
// many changes should collect them, since each call builds a new map.
func (g *gateway) SetLearned(origin string, senders []proxy.Sender) error {
	if origin == "" || origin == proxy.OriginStatic {
		return fmt.Errorf("the origin %q of learned senders: expected the name of a protocol", origin)
	}
	senders = slices.Clone(senders)
	for i := range senders {
		senders[i].Origin = origin
	}
	learned, err := proxy.NewSenders(senders...)
	if err != nil {
		return err
	}
	p := &g.proxies
	p.Lock()
	defer p.Unlock()
	before := p.learned[origin]
	if p.learned == nil {
		p.learned = map[string]*proxy.Senders{}
	}
	p.learned[origin] = learned
	all, err := p.with(p.static)
	if err != nil {
		p.learned[origin] = before // a nil one is empty
		return fmt.Errorf("%s: %w", origin, err)
	}
	if p.static == nil {
		return nil
	}
	g.adapting.Lock()
	g.plane.SetProxies(all)
	g.adapting.Unlock()
	return nil
}

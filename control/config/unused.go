package config

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// switchable is a switch in notifications and the formats that it enables.
type switchable struct {
	enabled *toggle
	formats []Format
}

// warnUnused warns of formats that are enabled but that no endpoint accepts, and of formats that endpoints accept but that are not enabled. Neither
// is ever sent.
func (r *report) warnUnused(doc *document) {
	n := &doc.Notifications
	granted := grants(&doc.Endpoints)
	for _, s := range []switchable{
		{&n.FastCNP.Enabled, []Format{packet.FastCNP}},
		{&n.LongHaulCNP.Enabled, []Format{packet.LongHaulCNP, packet.LongHaulCNPICMPv6}},
		{&n.PPFC.Enabled, []Format{packet.PPFC}},
		{&n.StandardCNP.Enabled, []Format{packet.StandardCNP}},
	} {
		if s.enabled.V {
			r.warnNotGranted(s, granted)
		} else {
			r.warnNotEnabled(s, granted)
		}
	}
}

// grants returns for each format the places in accepts that name it, in the order of the file.
func grants(endpoints *list[endpointSection]) (places [packet.SentNotifications][]place) {
	for i := range endpoints.Items {
		accepts := &endpoints.Items[i].Accepts
		for j := range accepts.Items {
			if item := &accepts.Items[j]; item.valid {
				places[item.V] = append(places[item.V], item.place)
			}
		}
	}
	return places
}

func (r *report) warnNotGranted(s switchable, granted [packet.SentNotifications][]place) {
	var names []string
	for _, f := range s.formats {
		if len(granted[f]) > 0 {
			return
		}
		names = append(names, f.String())
	}
	r.warn(s.enabled.place, "has no effect, as no endpoint accepts %[1]s; add %[1]s to accepts of the endpoints that understand it", either(names))
}

// warnNotEnabled warns once per format, however many endpoints accept it.
func (r *report) warnNotEnabled(s switchable, granted [packet.SentNotifications][]place) {
	for _, f := range s.formats {
		if len(granted[f]) == 0 {
			continue
		}
		also := ""
		if more := len(granted[f]) - 1; more == 1 {
			also = " here and in 1 more entry"
		} else if more > 1 {
			also = fmt.Sprintf(" here and in %d more entries", more)
		}
		r.warn(granted[f][0], "%s has no effect%s, as it is not enabled; set %s to true, or remove it here", f, also, s.enabled.path)
	}
}

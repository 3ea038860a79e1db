package api

import (
	"net/http"
	"testing"

	"github.com/cnpgate/cnpgate/control/report"
)

func TestEpisodes(t *testing.T) {
	g := newGate(t, 1)
	g.want(t, http.MethodGet, EpisodesPath, "", 200, `{"episodes":[]}`)
	g.episodes = []report.Episode{{ID: 1, Port: "dc"}, {ID: 2, Port: "wan", PeakBytes: 7}}
	for i := range g.episodes {
		g.episodes[i].Suppressed = map[string]uint64{}
		g.episodes[i].Notifications, g.episodes[i].Flows, g.episodes[i].Senders = map[string]uint64{}, []report.EpisodeFlow{}, []report.EpisodeFlow{}
	}
	g.want(t, http.MethodGet, EpisodesPath+"?port=wan", "", 200, `{"episodes":[{"id":2,"port":"wan"`)
	g.want(t, http.MethodGet, EpisodesPath+"?port=lan", "", 400, "expected dc, wan")
	g.want(t, http.MethodGet, EpisodesPath+"?limit=1", "", 400, "no parameter")
	g.want(t, http.MethodGet, EpisodesPath+"?since=2", "", 200, `{"episodes":[{"id":2,"port":"wan"`)
	g.want(t, http.MethodGet, EpisodesPath+"?since=4294967296", "", 200, `{"episodes":[]}`)
	g.want(t, http.MethodGet, EpisodesPath+"?since=9007199254740992", "", 400, "the number of an episode, 1 to 9007199254740991")
	if all, err := Get[Episodes](t.Context(), NewClient(g.path), EpisodesPath); err != nil || len(all.Episodes) != 2 || all.Episodes[1].PeakBytes != 7 {
		t.Errorf("%+v, %v", all, err)
	}
}

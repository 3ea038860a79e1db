package api

import (
	"context"
	"net/http"
	"runtime"

	"github.com/cnpgate/cnpgate/control/report"
)

// Version is the answer to GET /v1/version.
type Version struct {
	report.Identity
	GoVersion string `json:"go_version" doc:"The Go release that the program was built with."`
	Platform  string `json:"platform" doc:"Operating system and architecture."`
}

func (s *Server) getVersion(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	answer(w, http.StatusOK, Version{s.gateway.Identity(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
	return nil
}

// Version reads the gateway's identity and version.
func (c *Client) Version(ctx context.Context) (*Version, error) {
	answer := &Version{}
	return answer, c.read(ctx, http.MethodGet, VersionPath, nil, answer)
}

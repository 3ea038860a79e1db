package webserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/cnpgate/cnpgate/web"
)

// guard refuses what a browser asks on behalf of another site, and what isn't a request to read. A name of another site that resolves to this address (DNS
// rebinding) has that name in Host.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.SetHeaders(w.Header())
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, fmt.Errorf("no method %.20q; the page only reads", r.Method))
		case !s.serves(r):
			refuse(w, http.StatusMisdirectedRequest, fmt.Errorf("the page is not at %.100q; expected an address of this machine or, with TLS, a name in the certificate", r.Host))
		case !sameOrigin(r):
			refuse(w, http.StatusForbidden, fmt.Errorf("the request comes from another site, %.100q", r.Header.Get("Origin")))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// private lets those in who have the token, and no request that another site's page has made.
func (s *Server) private(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
			refuse(w, http.StatusForbidden, fmt.Errorf("the request comes from another site"))
			return
		}
		now := s.active.Load()
		if !now.admits(r.Header.Get("Authorization")) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="cnpgate"`)
			refuse(w, http.StatusUnauthorized, errToken)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(now.until, cancel)()
		next(w, r.WithContext(ctx))
	}
}

// serves reports whether the host that a request names is this one.
func (s *Server) serves(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if own, err := netip.ParseAddrPort(fmt.Sprint(local)); a.IsLoopback() || err == nil && own.Addr().Unmap() == a {
			return true
		}
	}
	certificate := s.active.Load().certificate
	return certificate != nil && certificate.Leaf.VerifyHostname(host) == nil
}

// sameOrigin reports whether a request's Origin, if it has one, is the page's.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return origin == "" || strings.EqualFold(origin, scheme+r.Host)
}

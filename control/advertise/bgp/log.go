//go:build !nobgp

package bgp

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/rs/zerolog"
)

// handler passes GoBGP's log to the gateway's. GoBGP's information is about steps of its state machine, so it becomes debug.
type handler struct {
	to    zerolog.Logger
	attrs []slog.Attr
}

func newLogger(to zerolog.Logger) *slog.Logger { return slog.New(&handler{to: to}) }

// Enabled implements slog.Handler. Debug messages of GoBGP, several for each BGP message, are never logged.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && levelOf(level) >= zerolog.GlobalLevel()
}

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	event := h.to.WithLevel(levelOf(r.Level))
	for _, a := range h.attrs {
		event = field(event, a)
	}
	r.Attrs(func(a slog.Attr) bool {
		event = field(event, a)
		return true
	})
	event.Msg("GoBGP: " + r.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.to, append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup implements slog.Handler. GoBGP uses no groups, and their keys remain unique without the name.
func (h *handler) WithGroup(string) slog.Handler { return h }

func levelOf(level slog.Level) zerolog.Level {
	switch {
	case level >= slog.LevelError:
		return zerolog.ErrorLevel
	case level >= slog.LevelWarn:
		return zerolog.WarnLevel
	}
	return zerolog.DebugLevel
}

// field adds an attribute under the names that the gateway's log uses. Values are logged as text.
func field(e *zerolog.Event, a slog.Attr) *zerolog.Event {
	switch a.Key {
	case "Topic":
		return e
	case "Key":
		return e.Str("peer", a.Value.String())
	case "Error", "Err":
		return e.Str("error", a.Value.String())
	}
	return e.Str(strings.ToLower(a.Key), a.Value.String())
}

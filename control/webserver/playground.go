package webserver

import (
	"context"
	"net/http"
)

// Playground is a source for the playground alone, which runs in the browser and asks nothing.
type Playground struct{}

func (Playground) routes(func(string, http.HandlerFunc)) {}

func (Playground) run(context.Context) {}

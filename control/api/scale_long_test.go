//go:build long

package api

const connections = 50_000 // of TestAtScale

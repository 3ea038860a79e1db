//go:build !long

package api

const connections = 10_000 // of TestAtScale

//go:build long && !nofleet

package fleetlink

const killedServers = 3

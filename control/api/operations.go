package api

import (
	"net/http"
	"slices"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/health"
)

// The paths that the client requests.
const (
	BGPPath           = "/v1/bgp"
	ConfigPath        = "/v1/config"
	CountersPath      = "/v1/counters"
	CountersSinceMark = CountersPath + "?since=mark"
	EpisodesPath      = "/v1/episodes"
	FlowsPath         = "/v1/flows"
	HealthPath        = "/v1/health"
	ReloadsPath       = "/v1/reloads"
	SendersPath       = "/v1/senders"
	NotificationsPath = "/v1/notifications"
	PairsPath         = "/v1/pairs"
	ProxiesPath       = "/v1/proxies"
	RDMAPath          = "/v1/rdma"
	RDMATracePath     = "/v1/rdma/trace"
	VersionPath       = "/v1/version"
	ExplainPath       = "/v1/explain"
	documentPath      = "/v1/openapi.json"
	ConfirmPath       = "/v1/reload/confirm"
	DrainPath         = "/v1/drain"
	FleetPath         = "/v1/fleet"
	FleetAnswersPath  = "/v1/fleet/answers"
	FleetEpisodesPath = "/v1/fleet/episodes"
	HintsPath         = "/v1/hints"
	MarkPath          = "/v1/mark"
	LogLevelPath      = "/v1/log-level"
	ModePath          = "/v1/mode"
	PacketsPath       = "/v1/packets/stream"
	ReloadPath        = "/v1/reload"
	RevertPath        = "/v1/reload/revert"
	StreamPath        = "/v1/notifications/stream"
)

// action answers a request with a value, as JSON with status 200 unless that is a reply; nil: it has written the answer itself. If the request is wrong, it
// returns an error before it writes an answer.
type action func(*request) (answer any, err error)

// operation is a request that the API answers. The routes and the OpenAPI document are made from it.
type operation struct {
	method, path string
	id           string // operationId
	summary      string
	parameters   []parameter
	lines        bool           // the answer is one object per line
	body         any            // a value of the type of the request's body, nil for none
	answers      map[int]any    // by status: a value of the answer's type
	errors       map[int]string // by status: the cause of an error
	act          action
}

// operations are all requests that the API answers.
func (s *Server) operations() []operation {
	const noAnswer = "A worker does not answer: it is stopping, or gets no CPU time."
	port := ofPort(s.state.ports)
	return []operation{
		{method: http.MethodGet, path: documentPath, id: "getDocument", summary: "This document.", answers: map[int]any{200: map[string]any{}}, act: s.serveDocument},
		{method: http.MethodGet, path: HealthPath, id: "getHealth", summary: "Whether all ports forward every frame.",
			answers: map[int]any{200: Health{}, 503: Health{}}, act: s.state.health},
		{method: http.MethodGet, path: RDMAPath, id: "getRDMA", summary: "The health of the RDMA connections that are followed: verdicts, sums and connections.",
			parameters: []parameter{{name: "bad", description: "Only connections with a verdict.", form: oneOf("true", "false")}},
			answers:    map[int]any{200: health.Report{}}, errors: map[int]string{503: noAnswer}, act: s.state.rdma},
		{method: http.MethodGet, path: RDMATracePath, id: "traceRDMA", summary: "What passes of one end's requests and their answers, over time, from now on: at most 32,768 packets.",
			parameters: traceParameters, answers: map[int]any{200: health.Trace{}},
			errors: map[int]string{404: "The connection isn't followed.", 409: "Another connection is traced.", 503: noAnswer}, act: s.state.trace},
		{method: http.MethodGet, path: VersionPath, id: "getVersion", summary: "The gateway's version, start time and configuration hash.",
			answers: map[int]any{200: Version{}}, act: s.state.version},
		{method: http.MethodGet, path: CountersPath, id: "getCounters", summary: "The gateway's counters, in total and by port.",
			parameters: []parameter{{name: "since", description: "Count from the mark on.", form: oneOf("mark")}},
			answers:    map[int]any{200: report.Counters{}}, errors: map[int]string{409: "Nothing is marked."}, act: s.state.counters},
		{method: http.MethodPost, path: MarkPath, id: "mark", summary: "Marks the counters: GET /v1/counters?since=mark counts from now on. It replaces an earlier mark.",
			answers: map[int]any{200: Mark{}}, act: s.state.mark},
		{method: http.MethodGet, path: FlowsPath, id: "getFlows", summary: "The flows of all workers.", parameters: slices.Concat(flowParameters, []parameter{sortParameter, intervalParameter}),
			answers: map[int]any{200: FlowsBody{}}, errors: map[int]string{503: noAnswer}, act: s.flows.list},
		{method: http.MethodGet, path: SendersPath, id: "getSenders", summary: "The senders of all flows, those with the largest values first.",
			parameters: slices.Concat(endParameters, []parameter{{name: "sort", description: "What the senders are sorted by; rate if not given.", form: oneOf(Sorts...)},
				offsetParameter, limitParameter, intervalParameter}),
			answers: map[int]any{200: SendersBody{}}, errors: map[int]string{503: noAnswer}, act: s.flows.senders},
		{method: http.MethodGet, path: PairsPath, id: "getPairs",
			summary:    "The pairs of QPs: flows whose source QP is confirmed or a candidate. A connection is listed once for each direction, port and worker that sees it.",
			parameters: flowParameters, answers: map[int]any{200: PairsBody{}}, errors: map[int]string{503: noAnswer}, act: s.flows.pairs},
		{method: http.MethodGet, path: ProxiesPath, id: "getProxies", summary: "The proxies that the gateway notifies in place of senders, in the order of the senders' prefixes.",
			answers: map[int]any{200: ProxiesBody{}}, act: s.flows.proxies},
		{method: http.MethodGet, path: NotificationsPath, id: "getNotifications", summary: "The latest notifications, the oldest first.",
			parameters: slices.Concat([]parameter{port}, notificationParameters, latestParameters),
			answers:    map[int]any{200: Notifications{}}, act: s.history.notifications},
		{method: http.MethodGet, path: StreamPath, id: "streamNotifications", summary: "Notifications from now on, one object per line, until the client ends the request.",
			parameters: slices.Concat([]parameter{port}, notificationParameters), lines: true, answers: map[int]any{200: Streamed{}}, act: s.history.streamNotifications},
		{method: http.MethodGet, path: PacketsPath, id: "streamPackets", summary: "A flow's packets, or frames that are dropped, truncated to 256 bytes, from now on, one object per line, until the client ends the request.",
			parameters: packetParameters, lines: true, answers: map[int]any{200: StreamedPacket{}}, errors: map[int]string{409: "Another client captures packets."}, act: s.history.streamPackets},
		{method: http.MethodGet, path: ExplainPath, id: "explain", summary: "Why a sender is, or isn't, notified: the gates of each of its flows to a receiver. It takes 0.1 s.",
			parameters: explainParameters, answers: map[int]any{200: Explanation{}}, errors: map[int]string{503: noAnswer}, act: s.flows.explanation},
		{method: http.MethodGet, path: EpisodesPath, id: "getEpisodes", summary: "The congestion episodes, the oldest first.",
			parameters: []parameter{port, {name: "since", description: "Only episodes with this number or a later one.", form: upTo(maxEpisode, "the number of an episode, 1 to %d")}}, answers: map[int]any{200: Episodes{}}, act: s.state.episodes},
		{method: http.MethodGet, path: BGPPath, id: "getBGP", summary: "The state of BGP: its sessions, what they announce and what was learned.",
			answers: map[int]any{200: advertise.Status{}}, act: s.state.bgp},
		{method: http.MethodGet, path: FleetPath, id: "getFleet", summary: "The gateways of the fleet, what they share, and the connections between them.",
			answers: map[int]any{200: fleetlink.FleetStatus{}}, act: s.state.fleet},
		{method: http.MethodGet, path: FleetAnswersPath, id: "getFleetAnswers", summary: "What all gateways of the fleet answer to a GET request of this API. It waits for 2 s at most.",
			parameters: fleetParameters, answers: map[int]any{200: FleetAnswers{}}, act: s.fleetAnswers},
		{method: http.MethodGet, path: FleetEpisodesPath, id: "getFleetEpisodes", summary: "The latest congestion episodes of all gateways of the fleet, from their stream.",
			answers: map[int]any{200: FleetEpisodes{}}, errors: map[int]string{503: "The stream can't be read."}, act: s.state.fleetEpisodes},
		{method: http.MethodGet, path: ConfigPath, id: "getConfig", summary: "The configuration in force, as it was read.",
			answers: map[int]any{200: Config{}}, act: s.state.config},
		{method: http.MethodPost, path: ReloadPath, id: "reload", summary: "Reads the configuration file again.", parameters: reloadParameters, answers: map[int]any{200: Reloaded{}},
			errors: map[int]string{
				409: "The file can't be read, or an earlier reload waits to be confirmed.",
				422: "The file has mistakes, or changes that need a restart; the error lists each with file, line and column.",
			}, act: s.state.reload},
		{method: http.MethodGet, path: ReloadsPath, id: "getReloads", summary: "The latest reloads, the oldest first: what changed, or why it was refused.",
			answers: map[int]any{200: Reloads{}}, act: s.state.reloads},
		{method: http.MethodPost, path: ConfirmPath, id: "confirmReload", summary: "Keeps the configuration of a reload that waits to be confirmed.",
			answers: map[int]any{200: Reloaded{}}, errors: map[int]string{409: "No reload waits to be confirmed."}, act: s.state.confirm},
		{method: http.MethodPost, path: RevertPath, id: "revertReload", summary: "Goes back to the configuration before a reload that waits to be confirmed.",
			answers: map[int]any{200: Reloaded{}}, errors: map[int]string{409: "No reload waits to be confirmed."}, act: s.state.revert},
		{method: http.MethodGet, path: ModePath, id: "getMode", summary: "The mode of each port.", answers: map[int]any{200: Modes{}}, act: s.state.modes},
		{method: http.MethodPut, path: ModePath, id: "setMode", summary: "Changes the mode of a port or of all, until the next reload.", body: ModeRequest{},
			answers: map[int]any{200: Modes{}}, errors: map[int]string{409: "The port is a mirror port, which only observes.", 413: bodyTooLong}, act: s.state.setMode},
		{method: http.MethodGet, path: DrainPath, id: "getDrain", summary: "Whether the gateway is being drained, and whether it can be stopped.",
			answers: map[int]any{200: Drain{}}, act: s.state.drained},
		{method: http.MethodPut, path: DrainPath, id: "beginDrain", summary: "Begins a drain: senders are not asked to slow down any more, and those that were are resumed.",
			answers: map[int]any{200: Drain{}}, act: s.state.drain(true)},
		{method: http.MethodDelete, path: DrainPath, id: "endDrain", summary: "Ends a drain.", answers: map[int]any{200: Drain{}}, act: s.state.drain(false)},
		{method: http.MethodGet, path: LogLevelPath, id: "getLogLevel", summary: "The lowest level that is logged.",
			answers: map[int]any{200: LogLevel{}}, act: s.state.logLevel},
		{method: http.MethodPut, path: LogLevelPath, id: "setLogLevel", summary: "Changes the lowest level that is logged, until the next reload.",
			body: LogLevelRequest{}, answers: map[int]any{200: LogLevel{}}, errors: map[int]string{413: bodyTooLong}, act: s.state.setLogLevel},
		{method: http.MethodGet, path: HintsPath, id: "getHints", summary: "The hints of host agents.", answers: map[int]any{200: HintsBody{}}, act: s.hints.answerList},
		{method: http.MethodPut, path: HintsPath, id: "putHint", summary: "States that two QPs are connected. It replaces hints that contradict it.",
			body: Hint{}, answers: map[int]any{200: PutBody{}, 201: PutBody{}},
			errors: map[int]string{409: "The hint contradicts qp_map of the configuration.", 413: bodyTooLong, 507: "The number of hints is at its maximum."},
			act:    s.hints.answerPut},
		{method: http.MethodPost, path: HintsPath, id: "postHints", summary: "Takes hints of a host's agent, with a lifetime, about packets from the host only.",
			body: hostHintsRequest{}, answers: map[int]any{200: HintsTaken{}},
			errors: map[int]string{413: "The body is longer than 262 KB.", 507: "The number of hints is at its maximum."}, act: s.hints.answerPost},
		{method: http.MethodDelete, path: HintsPath, id: "deleteHint", summary: "Withdraws a hint.", parameters: hintParameters,
			answers: map[int]any{200: DeletedBody{}}, errors: map[int]string{404: "There is no such hint."}, act: s.hints.answerDelete},
	}
}

const bodyTooLong = "The body is longer than 4096 bytes."

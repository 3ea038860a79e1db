package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/pairing"
)

// The paths that the client requests.
const (
	BGPPath           = "/v1/bgp"
	ConfigPath        = "/v1/config"
	CountersPath      = "/v1/counters"
	EpisodesPath      = "/v1/episodes"
	FlowsPath         = "/v1/flows"
	HealthPath        = "/v1/health"
	NotificationsPath = "/v1/notifications"
	PairsPath         = "/v1/pairs"
	ProxiesPath       = "/v1/proxies"
	VersionPath       = "/v1/version"
	explainPath       = "/v1/explain"
	documentPath      = "/v1/openapi.json"
	confirmPath       = "/v1/reload/confirm"
	drainPath         = "/v1/drain"
	HintsPath         = "/v1/hints"
	markPath          = "/v1/mark"
	logLevelPath      = "/v1/log-level"
	modePath          = "/v1/mode"
	packetsPath       = "/v1/packets/stream"
	reloadPath        = "/v1/reload"
	revertPath        = "/v1/reload/revert"
	streamPath        = "/v1/notifications/stream"
)

// action answers a request with the given query parameters. If the request is wrong, it returns an error before it writes an answer.
type action func(w http.ResponseWriter, r *http.Request, parameters map[string]string) error

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

// parameter is a key of the query.
type parameter struct {
	name        string
	description string
	required    bool
	schema      *huma.Schema
}

// operations are all requests that the API answers.
func (s *Server) operations() []operation {
	const noAnswer = "A worker does not answer: it is stopping, or gets no CPU time."
	return []operation{
		{method: http.MethodGet, path: documentPath, id: "getDocument", summary: "This document.", answers: map[int]any{200: map[string]any{}}, act: s.getDocument},
		{method: http.MethodGet, path: HealthPath, id: "getHealth", summary: "Whether all ports forward every frame.",
			answers: map[int]any{200: Health{}, 503: Health{}}, act: s.getHealth},
		{method: http.MethodGet, path: VersionPath, id: "getVersion", summary: "The gateway's version, start time and configuration hash.",
			answers: map[int]any{200: Version{}}, act: s.getVersion},
		{method: http.MethodGet, path: CountersPath, id: "getCounters", summary: "The gateway's counters, in total and by port.",
			parameters: []parameter{{name: "since", description: "Count from the mark on.", schema: words(sinceWords)}},
			answers:    map[int]any{200: report.Counters{}}, errors: map[int]string{409: "Nothing is marked."}, act: s.getCounters},
		{method: http.MethodPost, path: markPath, id: "mark", summary: "Marks the counters: GET /v1/counters?since=mark counts from now on. It replaces an earlier mark.",
			answers: map[int]any{200: Mark{}}, act: s.setMark},
		{method: http.MethodGet, path: FlowsPath, id: "getFlows", summary: "The flows of all workers.", parameters: append(flowParameters[:len(flowParameters):len(flowParameters)], intervalParameter),
			answers: map[int]any{200: flowsBody{}}, errors: map[int]string{503: noAnswer}, act: s.getFlows},
		{method: http.MethodGet, path: PairsPath, id: "getPairs",
			summary:    "The pairs of QPs: flows whose source QP is confirmed or a candidate. A connection is listed once for each direction, port and worker that sees it.",
			parameters: flowParameters, answers: map[int]any{200: pairsBody{}}, errors: map[int]string{503: noAnswer}, act: s.getPairs},
		{method: http.MethodGet, path: ProxiesPath, id: "getProxies", summary: "The proxies that the gateway notifies in place of senders, in the order of the senders' prefixes.",
			answers: map[int]any{200: proxiesBody{}}, act: s.getProxies},
		{method: http.MethodGet, path: NotificationsPath, id: "getNotifications", summary: "The latest notifications, the oldest first.",
			parameters: append(notificationParameters[:len(notificationParameters):len(notificationParameters)], latestParameters...),
			answers:    map[int]any{200: Notifications{}}, act: s.getNotifications},
		{method: http.MethodGet, path: streamPath, id: "streamNotifications", summary: "Notifications from now on, one object per line, until the client ends the request.",
			parameters: notificationParameters, lines: true, answers: map[int]any{200: Streamed{}}, act: s.streamNotifications},
		{method: http.MethodGet, path: packetsPath, id: "streamPackets", summary: "A flow's packets, truncated to 256 bytes, from now on, one object per line, until the client ends the request.",
			parameters: packetParameters, lines: true, answers: map[int]any{200: StreamedPacket{}}, errors: map[int]string{409: "Another client captures packets."}, act: s.streamPackets},
		{method: http.MethodGet, path: explainPath, id: "explain", summary: "Why a sender is, or isn't, notified: the gates of each of its flows to a receiver. It takes 0.1 s.",
			parameters: explainParameters, answers: map[int]any{200: Explanation{}}, errors: map[int]string{503: noAnswer}, act: s.getExplanation},
		{method: http.MethodGet, path: EpisodesPath, id: "getEpisodes", summary: "The congestion episodes, the oldest first.",
			parameters: []parameter{portParameter}, answers: map[int]any{200: Episodes{}}, act: s.getEpisodes},
		{method: http.MethodGet, path: BGPPath, id: "getBGP", summary: "The state of BGP: its sessions, what they announce and what was learned.",
			answers: map[int]any{200: advertise.Status{}}, act: s.getBGP},
		{method: http.MethodGet, path: ConfigPath, id: "getConfig", summary: "The configuration in force, as it was read.",
			answers: map[int]any{200: Config{}}, act: s.getConfig},
		{method: http.MethodPost, path: reloadPath, id: "reload", summary: "Reads the configuration file again.", parameters: reloadParameters, answers: map[int]any{200: Reloaded{}},
			errors: map[int]string{
				409: "The file can't be read, or an earlier reload waits to be confirmed.",
				422: "The file has mistakes, or changes that need a restart; the error lists each with file, line and column.",
			}, act: s.reload},
		{method: http.MethodPost, path: confirmPath, id: "confirmReload", summary: "Keeps the configuration of a reload that waits to be confirmed.",
			answers: map[int]any{200: Reloaded{}}, errors: map[int]string{409: "No reload waits to be confirmed."}, act: s.confirmReload},
		{method: http.MethodPost, path: revertPath, id: "revertReload", summary: "Goes back to the configuration before a reload that waits to be confirmed.",
			answers: map[int]any{200: Reloaded{}}, errors: map[int]string{409: "No reload waits to be confirmed."}, act: s.revertReload},
		{method: http.MethodGet, path: modePath, id: "getMode", summary: "The mode of each port.", answers: map[int]any{200: Modes{}}, act: s.getMode},
		{method: http.MethodPut, path: modePath, id: "setMode", summary: "Changes the mode of a port or of all, until the next reload.", body: modeRequest{},
			answers: map[int]any{200: Modes{}}, errors: map[int]string{409: "The port is a mirror port, which only observes.", 413: bodyTooLong}, act: s.setMode},
		{method: http.MethodGet, path: drainPath, id: "getDrain", summary: "Whether the gateway is being drained, and whether it can be stopped.",
			answers: map[int]any{200: Drain{}}, act: s.getDrain},
		{method: http.MethodPut, path: drainPath, id: "beginDrain", summary: "Begins a drain: senders are not asked to slow down any more, and those that were are resumed.",
			answers: map[int]any{200: Drain{}}, act: s.beginDrain},
		{method: http.MethodDelete, path: drainPath, id: "endDrain", summary: "Ends a drain.", answers: map[int]any{200: Drain{}}, act: s.endDrain},
		{method: http.MethodGet, path: logLevelPath, id: "getLogLevel", summary: "The lowest level that is logged.",
			answers: map[int]any{200: LogLevel{}}, act: s.getLogLevel},
		{method: http.MethodPut, path: logLevelPath, id: "setLogLevel", summary: "Changes the lowest level that is logged, until the next reload.",
			body: logLevelRequest{}, answers: map[int]any{200: LogLevel{}}, errors: map[int]string{413: bodyTooLong}, act: s.setLogLevel},
		{method: http.MethodGet, path: HintsPath, id: "getHints", summary: "The hints of host agents.", answers: map[int]any{200: hintsBody{}}, act: s.getHints},
		{method: http.MethodPut, path: HintsPath, id: "putHint", summary: "States that two QPs are connected. It replaces hints that contradict it.",
			body: hintRequest{}, answers: map[int]any{200: putBody{}, 201: putBody{}},
			errors: map[int]string{409: "The hint contradicts qp_map of the configuration.", 413: bodyTooLong, 507: "The number of hints is at its maximum."},
			act:    s.putHint},
		{method: http.MethodDelete, path: HintsPath, id: "deleteHint", summary: "Withdraws a hint.", parameters: hintParameters,
			answers: map[int]any{200: deletedBody{}}, errors: map[int]string{404: "There is no such hint."}, act: s.deleteHint},
	}
}

const bodyTooLong = "The body is longer than 4096 bytes."

var (
	hostSchema  = &huma.Schema{Type: huma.TypeString, Examples: []any{"10.1.0.1"}}
	hostsSchema = &huma.Schema{Type: huma.TypeString, Examples: []any{"10.1.0.1", "fd00::/64"}}
	qpSchema    = &huma.Schema{Type: huma.TypeString, Pattern: number, Examples: []any{"17", "0x11"}}
	limitSchema = &huma.Schema{Type: huma.TypeInteger, Minimum: bound(1), Maximum: bound(maxLimit)}

	flowParameters = []parameter{
		{name: "source_ip", description: "Address or prefix of the sender.", schema: hostsSchema},
		{name: "destination_ip", description: "Address or prefix of the receiver.", schema: hostsSchema},
		{name: "source_qp", description: "Confirmed QP of the sender.", schema: qpSchema},
		{name: "destination_qp", description: "QP of the receiver.", schema: qpSchema},
		{name: "qp_state", description: "State of the source QP.", schema: words(QPStates)},
		{name: "qp_evidence", description: "How the source QP was found.", schema: words(QPEvidences)},
		{name: "limit", description: "Greatest number of flows; \"more\" in the answer is true if there are others.", schema: limitSchema},
	}
	explainParameters = []parameter{
		{name: "source_ip", description: "The sender.", required: true, schema: hostSchema},
		{name: "destination_ip", description: "The receiver.", required: true, schema: hostSchema},
		{name: "qp", description: "Only flows with this QP at one end.", schema: qpSchema},
	}
	intervalParameter = parameter{name: "interval", description: "Time for which the flows' rates are measured, such as 1s.", schema: &huma.Schema{Type: huma.TypeString, Examples: []any{"1s"}}}
	portParameter     = parameter{name: "port", description: "Name of the port.", schema: &huma.Schema{Type: huma.TypeString}}

	notificationParameters = []parameter{
		portParameter,
		{name: "kind", description: "Kind of notification.", schema: words(Kinds)},
		{name: "outcome", description: "Whether it was sent. Without this parameter, suppressed ones are left out.", schema: words(Outcomes)},
		{name: "source_ip", description: "Address or prefix of the sender.", schema: hostsSchema},
		{name: "destination_ip", description: "Address or prefix of the receiver.", schema: hostsSchema},
		{name: "source_qp", description: "Confirmed QP of the sender.", schema: qpSchema},
		{name: "destination_qp", description: "QP of the receiver.", schema: qpSchema},
	}
	reloadParameters = []parameter{
		{name: "dry_run", description: "Whether to change nothing, and only answer what would change.", schema: words([]string{"true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False"})},
		{name: "confirm", description: "Time after which the gateway goes back to the former configuration, unless this one is confirmed.", schema: &huma.Schema{Type: huma.TypeString, Examples: []any{"60s"}}},
	}
	latestParameters = []parameter{
		{name: "limit", description: "Greatest number of notifications, the latest ones; 100 if not given.", schema: &huma.Schema{Type: huma.TypeInteger, Minimum: bound(1), Maximum: bound(MaxNotifications)}},
		{name: "frames", description: "Whether to include the frames.", schema: words([]string{"true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False"})},
	}
	packetParameters = []parameter{
		{name: "source_ip", description: "Address of the sender.", required: true, schema: hostSchema},
		{name: "destination_ip", description: "Address of the receiver.", required: true, schema: hostSchema},
		{name: "destination_qp", description: "QP of the receiver; without it, all packets between the addresses.", schema: qpSchema},
		{name: "decisions", description: "Whether to include what each stage decided about a packet.", schema: words([]string{"true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False"})},
		{name: "rate", description: "Greatest number of packets a second; 1000 if not given.", schema: &huma.Schema{Type: huma.TypeInteger, Minimum: bound(1), Maximum: bound(MostPackets)}},
	}
	hintParameters = []parameter{
		{name: "source_ip", description: "The host at one end.", required: true, schema: hostSchema},
		{name: "destination_ip", description: "The host at the other end.", required: true, schema: hostSchema},
		{name: "source_qp", description: "QP at source_ip.", required: true, schema: qpSchema},
		{name: "destination_qp", description: "QP at destination_ip.", required: true, schema: qpSchema},
		{name: "tags", description: "VLAN tags of the connection.", schema: &huma.Schema{Type: huma.TypeString, Examples: []any{"10", "0x88a8:10/20", "none"}}},
		{name: "tunnel", description: "Tunnel of the connection.", schema: &huma.Schema{Type: huma.TypeString, Examples: []any{"vxlan:5000"}}},
	}

	// QPStates are the states of QPs by which flows are selected.
	QPStates = names[pairing.State](pairing.Unknown, pairing.Confirmed)
	// QPEvidences are the kinds of evidence by which flows are selected.
	QPEvidences = names[pairing.Evidence](pairing.EvidenceNone, pairing.Evidences-1)
)

// number is a whole number in any notation of the configuration.
const number = "^[0-9a-fA-FxXoObB_]+$"

func bound(n float64) *float64 { return &n }

func words(all []string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, word := range all {
		s.Enum = append(s.Enum, word)
	}
	return s
}

package packet

// Role is the side of a connection that sends packets of an opcode, and so whose PSNs they carry (IBTA 9.7.2): a request carries its
// sender's PSN, a response that of the request that it answers.
type Role uint8

const (
	// NoRole is for datagrams and CNPs, which belong to no connection.
	NoRole Role = iota
	Request
	// ReadRequest is a request that uses as many PSNs as its response has packets.
	ReadRequest
	Response
)

// Role is the role of a connection's packets (RC, UC and XRC).
func (o Opcode) Role() Role { return roles[o] }

// Roles are the roles of all opcodes, for assembly. Nobody may change them.
func Roles() *[256]Role { return &roles }

var roles = func() (r [256]Role) {
	for i := range r {
		name := services[i>>5].name
		if !Opcode(i).Known() || name != "RC" && name != "UC" && name != "XRC" {
			continue
		}
		switch {
		case operations[i&31].response:
			r[i] = Response
		case i&31 == int(RCReadRequest):
			r[i] = ReadRequest
		default:
			r[i] = Request
		}
	}
	return r
}()

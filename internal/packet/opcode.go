package packet

// Opcode is the BTH's first octet (IBTA 9.2.1): its three high bits are the transport service, the others the operation.
type Opcode uint8

// Opcodes of the Reliable Connection (RC) service.
const (
	RCSendFirst          Opcode = 0x00
	RCSendMiddle         Opcode = 0x01
	RCSendLast           Opcode = 0x02
	RCSendLastImm        Opcode = 0x03
	RCSendOnly           Opcode = 0x04
	RCSendOnlyImm        Opcode = 0x05
	RCWriteFirst         Opcode = 0x06
	RCWriteMiddle        Opcode = 0x07
	RCWriteLast          Opcode = 0x08
	RCWriteLastImm       Opcode = 0x09
	RCWriteOnly          Opcode = 0x0a
	RCWriteOnlyImm       Opcode = 0x0b
	RCReadRequest        Opcode = 0x0c
	RCReadRespFirst      Opcode = 0x0d
	RCReadRespMiddle     Opcode = 0x0e
	RCReadRespLast       Opcode = 0x0f
	RCReadRespOnly       Opcode = 0x10
	RCAcknowledge        Opcode = 0x11
	RCAtomicAcknowledge  Opcode = 0x12
	RCCmpSwap            Opcode = 0x13
	RCFetchAdd           Opcode = 0x14
	RCSendLastInvalidate Opcode = 0x16
	RCSendOnlyInvalidate Opcode = 0x17
	RCFlush              Opcode = 0x1c // IBTA Annex A19
	RCAtomicWrite        Opcode = 0x1d // IBTA Annex A19
)

// Transport services: the three high bits of an opcode. The operations of UC, RD and XRC are those of RC: UC|RCSendOnly is UC's SEND Only.
const (
	UC  Opcode = 0x20 // Unreliable Connection
	RD  Opcode = 0x40 // Reliable Datagram
	UD  Opcode = 0x60 // Unreliable Datagram
	XRC Opcode = 0xa0 // Extended Reliable Connection (IBTA Annex A14)
)

// UDSendOnly is the operation of nearly all datagrams, and CNP the congestion notification packet.
const (
	UDSendOnly        = UD | RCSendOnly
	CNP        Opcode = 0x81 // IBTA Annex A17
)

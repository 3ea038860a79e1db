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

// Opcodes of the Unreliable Connection (UC) service.
const (
	UCSendFirst    Opcode = 0x20
	UCSendMiddle   Opcode = 0x21
	UCSendLast     Opcode = 0x22
	UCSendLastImm  Opcode = 0x23
	UCSendOnly     Opcode = 0x24
	UCSendOnlyImm  Opcode = 0x25
	UCWriteFirst   Opcode = 0x26
	UCWriteMiddle  Opcode = 0x27
	UCWriteLast    Opcode = 0x28
	UCWriteLastImm Opcode = 0x29
	UCWriteOnly    Opcode = 0x2a
	UCWriteOnlyImm Opcode = 0x2b
)

// Opcodes of the Reliable Datagram (RD) service.
const (
	RDSendFirst         Opcode = 0x40
	RDSendMiddle        Opcode = 0x41
	RDSendLast          Opcode = 0x42
	RDSendLastImm       Opcode = 0x43
	RDSendOnly          Opcode = 0x44
	RDSendOnlyImm       Opcode = 0x45
	RDWriteFirst        Opcode = 0x46
	RDWriteMiddle       Opcode = 0x47
	RDWriteLast         Opcode = 0x48
	RDWriteLastImm      Opcode = 0x49
	RDWriteOnly         Opcode = 0x4a
	RDWriteOnlyImm      Opcode = 0x4b
	RDReadRequest       Opcode = 0x4c
	RDReadRespFirst     Opcode = 0x4d
	RDReadRespMiddle    Opcode = 0x4e
	RDReadRespLast      Opcode = 0x4f
	RDReadRespOnly      Opcode = 0x50
	RDAcknowledge       Opcode = 0x51
	RDAtomicAcknowledge Opcode = 0x52
	RDCmpSwap           Opcode = 0x53
	RDFetchAdd          Opcode = 0x54
	RDResync            Opcode = 0x55
)

// Opcodes of the Unreliable Datagram (UD) service, and the congestion notification packet.
const (
	UDSendOnly    Opcode = 0x64
	UDSendOnlyImm Opcode = 0x65
	CNP           Opcode = 0x81 // IBTA Annex A17
)

// Opcodes of the Extended Reliable Connection (XRC) service (IBTA Annex A14).
const (
	XRCSendFirst          Opcode = 0xa0
	XRCSendMiddle         Opcode = 0xa1
	XRCSendLast           Opcode = 0xa2
	XRCSendLastImm        Opcode = 0xa3
	XRCSendOnly           Opcode = 0xa4
	XRCSendOnlyImm        Opcode = 0xa5
	XRCWriteFirst         Opcode = 0xa6
	XRCWriteMiddle        Opcode = 0xa7
	XRCWriteLast          Opcode = 0xa8
	XRCWriteLastImm       Opcode = 0xa9
	XRCWriteOnly          Opcode = 0xaa
	XRCWriteOnlyImm       Opcode = 0xab
	XRCReadRequest        Opcode = 0xac
	XRCReadRespFirst      Opcode = 0xad
	XRCReadRespMiddle     Opcode = 0xae
	XRCReadRespLast       Opcode = 0xaf
	XRCReadRespOnly       Opcode = 0xb0
	XRCAcknowledge        Opcode = 0xb1
	XRCAtomicAcknowledge  Opcode = 0xb2
	XRCCmpSwap            Opcode = 0xb3
	XRCFetchAdd           Opcode = 0xb4
	XRCSendLastInvalidate Opcode = 0xb6
	XRCSendOnlyInvalidate Opcode = 0xb7
)

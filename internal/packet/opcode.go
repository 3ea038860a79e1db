package packet

// Opcode is the BTH's first octet (IBTA 9.2.1): its three high bits name the transport service, the others the operation.
type Opcode uint8

// Opcodes of the Reliable Connection (RC) service.
const (
	RCSendFirst          Opcode = 0x00
	RCSendMiddle         Opcode = 0x01
	RCSendLast           Opcode = 0x02
	RCSendLastImmediate  Opcode = 0x03
	RCSendOnly           Opcode = 0x04
	RCSendOnlyImmediate  Opcode = 0x05
	RCRDMAWriteFirst     Opcode = 0x06
	RCRDMAWriteMiddle    Opcode = 0x07
	RCRDMAWriteLast      Opcode = 0x08
	RCRDMAWriteLastImm   Opcode = 0x09
	RCRDMAWriteOnly      Opcode = 0x0a
	RCRDMAWriteOnlyImm   Opcode = 0x0b
	RCRDMAReadRequest    Opcode = 0x0c
	RCRDMAReadRespFirst  Opcode = 0x0d
	RCRDMAReadRespMiddle Opcode = 0x0e
	RCRDMAReadRespLast   Opcode = 0x0f
	RCRDMAReadRespOnly   Opcode = 0x10
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
	UCSendFirst         Opcode = 0x20
	UCSendMiddle        Opcode = 0x21
	UCSendLast          Opcode = 0x22
	UCSendLastImmediate Opcode = 0x23
	UCSendOnly          Opcode = 0x24
	UCSendOnlyImmediate Opcode = 0x25
	UCRDMAWriteFirst    Opcode = 0x26
	UCRDMAWriteMiddle   Opcode = 0x27
	UCRDMAWriteLast     Opcode = 0x28
	UCRDMAWriteLastImm  Opcode = 0x29
	UCRDMAWriteOnly     Opcode = 0x2a
	UCRDMAWriteOnlyImm  Opcode = 0x2b
)

// Opcodes of the Reliable Datagram (RD) service.
const (
	RDSendFirst          Opcode = 0x40
	RDSendMiddle         Opcode = 0x41
	RDSendLast           Opcode = 0x42
	RDSendLastImmediate  Opcode = 0x43
	RDSendOnly           Opcode = 0x44
	RDSendOnlyImmediate  Opcode = 0x45
	RDRDMAWriteFirst     Opcode = 0x46
	RDRDMAWriteMiddle    Opcode = 0x47
	RDRDMAWriteLast      Opcode = 0x48
	RDRDMAWriteLastImm   Opcode = 0x49
	RDRDMAWriteOnly      Opcode = 0x4a
	RDRDMAWriteOnlyImm   Opcode = 0x4b
	RDRDMAReadRequest    Opcode = 0x4c
	RDRDMAReadRespFirst  Opcode = 0x4d
	RDRDMAReadRespMiddle Opcode = 0x4e
	RDRDMAReadRespLast   Opcode = 0x4f
	RDRDMAReadRespOnly   Opcode = 0x50
	RDAcknowledge        Opcode = 0x51
	RDAtomicAcknowledge  Opcode = 0x52
	RDCmpSwap            Opcode = 0x53
	RDFetchAdd           Opcode = 0x54
	RDResync             Opcode = 0x55
)

// Opcodes of the Unreliable Datagram (UD) service, and the congestion notification packet.
const (
	UDSendOnly          Opcode = 0x64
	UDSendOnlyImmediate Opcode = 0x65
	CNP                 Opcode = 0x81 // IBTA Annex A17
)

// Opcodes of the Extended Reliable Connection (XRC) service (IBTA Annex A14).
const (
	XRCSendFirst          Opcode = 0xa0
	XRCSendMiddle         Opcode = 0xa1
	XRCSendLast           Opcode = 0xa2
	XRCSendLastImmediate  Opcode = 0xa3
	XRCSendOnly           Opcode = 0xa4
	XRCSendOnlyImmediate  Opcode = 0xa5
	XRCRDMAWriteFirst     Opcode = 0xa6
	XRCRDMAWriteMiddle    Opcode = 0xa7
	XRCRDMAWriteLast      Opcode = 0xa8
	XRCRDMAWriteLastImm   Opcode = 0xa9
	XRCRDMAWriteOnly      Opcode = 0xaa
	XRCRDMAWriteOnlyImm   Opcode = 0xab
	XRCRDMAReadRequest    Opcode = 0xac
	XRCRDMAReadRespFirst  Opcode = 0xad
	XRCRDMAReadRespMiddle Opcode = 0xae
	XRCRDMAReadRespLast   Opcode = 0xaf
	XRCRDMAReadRespOnly   Opcode = 0xb0
	XRCAcknowledge        Opcode = 0xb1
	XRCAtomicAcknowledge  Opcode = 0xb2
	XRCCmpSwap            Opcode = 0xb3
	XRCFetchAdd           Opcode = 0xb4
	XRCSendLastInvalidate Opcode = 0xb6
	XRCSendOnlyInvalidate Opcode = 0xb7
)

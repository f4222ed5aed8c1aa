package rpcrdma

import "strconv"

// ErrorCode is what an ERROR reports. What a number means depends on the version.
type ErrorCode uint32

// Codes of an ERROR; version 1 has the first two.
const (
	CodeVers  ErrorCode = 1
	CodeChunk ErrorCode = 2 // version 1

	CodeBadXDR        ErrorCode = 2 // version 2
	CodeBadPropVal    ErrorCode = 3
	CodeInvalHType    ErrorCode = 4
	CodeInvalCont     ErrorCode = 5
	CodeReadChunks    ErrorCode = 6
	CodeWriteChunks   ErrorCode = 7
	CodeSegments      ErrorCode = 8
	CodeWriteResource ErrorCode = 9
	CodeReplyResource ErrorCode = 10
	CodeSystem        ErrorCode = 100
)

// Report is what an ERROR reports. Fields that its code does not have are 0.
type Report struct {
	Code ErrorCode

	// Of VERS. Refused is the version of the message that was refused, which is the version word
	// of the ERROR; the others are the versions that its sender knows.
	Refused   uint32
	Low, High uint32

	Max    uint32 // of READ_CHUNKS, WRITE_CHUNKS and SEGMENTS: how many are possible
	Index  uint32 // of WRITE_RESOURCE: which Write chunk is too short, from 1; 0 if that is not known
	Needed uint32 // of WRITE_RESOURCE and REPLY_RESOURCE: the length that is needed; 0 if that is not known
}

// field is a field of a Report.
type field uint8

const (
	noField field = iota
	fieldLow
	fieldHigh
	fieldMax
	fieldIndex
	fieldNeeded
)

// field returns one of the fields.
func (r *Report) field(f field) *uint32 {
	switch f {
	case fieldLow:
		return &r.Low
	case fieldHigh:
		return &r.High
	case fieldMax:
		return &r.Max
	case fieldIndex:
		return &r.Index
	}
	return &r.Needed
}

// reportShape is what follows a code, and which side may send it.
type reportShape struct {
	name       string
	fields     [2]field
	eitherSide bool
}

// reportShapes are the codes of each version.
var reportShapes = [...]map[ErrorCode]reportShape{
	Version1: {
		CodeVers:  {name: "ERR_VERS", fields: [2]field{fieldLow, fieldHigh}},
		CodeChunk: {name: "ERR_CHUNK"},
	},
	Version2: {
		CodeVers:          {name: "VERS", fields: [2]field{fieldLow, fieldHigh}},
		CodeBadXDR:        {name: "BAD_XDR"},
		CodeBadPropVal:    {name: "BAD_PROPVAL", eitherSide: true},
		CodeInvalHType:    {name: "INVAL_HTYPE", eitherSide: true},
		CodeInvalCont:     {name: "INVAL_CONT"},
		CodeReadChunks:    {name: "READ_CHUNKS", fields: [2]field{fieldMax}},
		CodeWriteChunks:   {name: "WRITE_CHUNKS", fields: [2]field{fieldMax}},
		CodeSegments:      {name: "SEGMENTS", fields: [2]field{fieldMax}},
		CodeWriteResource: {name: "WRITE_RESOURCE", fields: [2]field{fieldIndex, fieldNeeded}},
		CodeReplyResource: {name: "REPLY_RESOURCE", fields: [2]field{fieldNeeded}},
		CodeSystem:        {name: "SYSTEM"},
	},
}

// Name returns the name that a version gives the code.
func (c ErrorCode) Name(version uint32) string {
	if version < uint32(len(reportShapes)) {
		if s, known := reportShapes[version][c]; known {
			return s.name
		}
	}
	return "error " + strconv.FormatUint(uint64(c), 10)
}

// reportSize returns the length of the code and what follows it.
func reportSize(version uint32, c ErrorCode) int {
	n := wordSize
	for _, f := range reportShapes[version][c].fields {
		if f != noField {
			n += wordSize
		}
	}
	return n
}

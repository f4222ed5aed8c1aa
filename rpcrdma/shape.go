package rpcrdma

// body is what follows the prefix of a header.
type body uint8

const (
	noBody body = iota
	listsBody
	reportBody
	propertiesBody
)

// typeShape is what a type of header looks like, and what is done about it.
type typeShape struct {
	known   bool
	body    body
	payload bool      // an RPC message, or a part of it, follows
	flags   Flags     // that it may have, of MORE and TPMORE
	refused ErrorCode // that a message of this type is answered with; 0 and no body has it dropped
}

// versionShape is what the headers of a version look like.
type versionShape struct {
	prefix    int
	invHandle bool // lists begin with one
	types     []typeShape
	unknown   ErrorCode // answers an unknown type
	malformed ErrorCode // answers what has no code of its own
}

// shapes are the versions. A later revision is another row.
var shapes = [...]versionShape{
	Version1: {
		prefix: PrefixSize1,
		types: []typeShape{
			TypeMsg:   {known: true, body: listsBody, payload: true},
			TypeNoMsg: {known: true, body: listsBody},
			TypeMsgP:  {known: true, refused: CodeChunk},
			TypeDone:  {known: true},
			TypeError: {known: true, body: reportBody},
		},
		unknown:   CodeChunk,
		malformed: CodeChunk,
	},
	Version2: {
		prefix:    PrefixSize2,
		invHandle: true,
		types: []typeShape{
			TypeMsg:      {known: true, body: listsBody, payload: true, flags: FlagMore},
			TypeNoMsg:    {known: true, body: listsBody},
			TypeError:    {known: true, body: reportBody},
			TypeConnProp: {known: true, body: propertiesBody, flags: FlagMore | FlagTPMore},
		},
		unknown:   CodeInvalHType,
		malformed: CodeBadXDR,
	},
}

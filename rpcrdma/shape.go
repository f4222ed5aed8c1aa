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
	body    body  // noBody is a type that is unknown or never sent
	payload bool  // an RPC message, or a part of it, follows
	flags   Flags // that it may have, of MORE and TPMORE
	dropped bool  // has no answer although it has no body
}

// versionShape is what the headers of a version look like.
type versionShape struct {
	prefix    int
	invHandle bool // lists begin with one
	types     []typeShape
	unknown   ErrorCode // answers a type without body
	malformed ErrorCode // answers what has no code of its own
}

// shapes are the versions. A later revision is another row.
var shapes = [...]versionShape{
	Version1: {
		prefix: PrefixSize1,
		types: []typeShape{
			TypeMsg:   {body: listsBody, payload: true},
			TypeNoMsg: {body: listsBody},
			TypeDone:  {dropped: true},
			TypeError: {body: reportBody},
		},
		unknown:   CodeChunk,
		malformed: CodeChunk,
	},
	Version2: {
		prefix:    PrefixSize2,
		invHandle: true,
		types: []typeShape{
			TypeMsg:      {body: listsBody, payload: true, flags: FlagMore},
			TypeNoMsg:    {body: listsBody},
			TypeError:    {body: reportBody},
			TypeConnProp: {body: propertiesBody, flags: FlagMore | FlagTPMore},
		},
		unknown:   CodeInvalHType,
		malformed: CodeBadXDR,
	},
}

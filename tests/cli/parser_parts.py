"""The common parts of the stand-ins for programs' own parsers."""

import argparse


def refuse(message):
    raise ValueError(message)


class Parser(argparse.ArgumentParser):
    """A parser that raises ValueError for an error, while argparse would end the program."""

    def error(self, message):
        refuse(message)


def torchrun(argv):
    """Parses the options of torchrun that definitions use. Returns the script and its arguments."""
    parser = Parser(prog="torchrun", allow_abbrev=True)
    parser.add_argument("--nnodes", type=str, default="1:1")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", type=str, default="1")
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0)
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", type=str)
    parser.add_argument("--master-port", "--master_port", default=29500, type=int)
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("--role", type=str, default="default")
    parser.add_argument("-t", "--tee", type=str, default="0")
    parser.add_argument("--local-ranks-filter", "--local_ranks_filter", type=str, default="")
    parser.add_argument("training_script", type=str)
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    found = parser.parse_args([word.replace("<MASTER_PORT>", "29500") for word in argv])
    return found.training_script, found.training_script_args

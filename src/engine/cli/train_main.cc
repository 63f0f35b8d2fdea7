#include "engine/cli/train_command.h"

int main(int argc, char** argv) { return ridgeline::engine::TrainMain(argc, argv); }

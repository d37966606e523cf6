import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.analysis.common.CommonAnalysisPlugin;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.transport.Netty4Plugin;

/** One Elasticsearch node; the modules of its distribution are on the class path. */
final class SingleNode extends Node {
    private SingleNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class, CommonAnalysisPlugin.class), false);
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            Settings.EMPTY,
            Map.of("path.home", home.toString()),
            home.resolve("config"),
            () -> "forager"
        );
        LogConfigurator.configure(environment);
        Node node = new SingleNode(environment).start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        new CountDownLatch(1).await();
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (IOException error) {
            error.printStackTrace();
        }
    }
}
